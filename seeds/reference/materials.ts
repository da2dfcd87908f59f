export const GRADES = {
  battery: 'Battery',
  technical: 'Technical',
  chemical: 'Chemical',
  industrial: 'Industrial',
  'ceramic-glass': 'Ceramic/Glass',
} as const;

/** Services that a processing fee pays for; `None` where a material is sold. */
export const SERVICES = {
  none: 'None',
  'tolling-conversion': 'Tolling conversion',
  graphitisation: 'Graphitisation',
  'coating-and-carbonisation': 'Coating and carbonisation',
  granulation: 'Granulation',
  'spheronisation-and-purification': 'Spheronisation and purification',
  refining: 'Refining',
} as const;

export const CELL_FORMATS = {
  prismatic: 'Prismatic',
  'long-prismatic': 'Long prismatic',
  pouch: 'Pouch',
  'cylindrical-18650': 'Cylindrical 18650',
  'cylindrical-21700': 'Cylindrical 21700',
  'cylindrical-4680': 'Cylindrical 4680',
  coin: 'Coin',
  module: 'Module',
  pack: 'Pack',
} as const;

export const SUB_PRODUCTS = {
  nickel: 'Nickel',
  cobalt: 'Cobalt',
  lithium: 'Lithium',
  'nickel-and-cobalt': 'Nickel and cobalt',
  copper: 'Copper',
  aluminium: 'Aluminium',
  graphite: 'Graphite',
  'black-mass': 'Black mass',
  'electrode-scrap': 'Electrode scrap',
  'battery-pack': 'Battery pack',
  'lithium-carbonate': 'Lithium carbonate',
} as const;

export const FEEDSTOCKS = {
  'nmc-black-mass': 'NMC black mass',
  'nca-black-mass': 'NCA black mass',
  'lco-black-mass': 'LCO black mass',
  'lfp-black-mass': 'LFP black mass',
  'mixed-black-mass': 'Mixed black mass',
  'cathode-electrode-scrap': 'Cathode electrode scrap',
  'anode-electrode-scrap': 'Anode electrode scrap',
  'production-cell-scrap': 'Production cell scrap',
  'end-of-life-ev-packs': 'End-of-life EV packs',
  'end-of-life-storage-packs': 'End-of-life storage packs',
  'portable-cells': 'Portable cells',
} as const;

/** +80 mesh stays on the sieve (coarser), −100 mesh passes it (finer). */
export const MESH_SIZES = {
  '+32-mesh': '+32 mesh',
  '+50-mesh': '+50 mesh',
  '+80-mesh': '+80 mesh',
  '+100-mesh': '+100 mesh',
  '-100-mesh': '-100 mesh',
  '-200-mesh': '-200 mesh',
  '15-micron': '15 micron',
  '20-micron': '20 micron',
} as const;
