/**
 * Delivery terms, named as traders write them: the 11 rules of Incoterms 2020, and two usual
 * bases that are not Incoterms.
 */
export const INCOTERMS = {
  exw: 'EXW',
  fca: 'FCA',
  cpt: 'CPT',
  cip: 'CIP',
  dap: 'DAP',
  dpu: 'DPU',
  ddp: 'DDP',
  fas: 'FAS',
  fob: 'FOB',
  cfr: 'CFR',
  cif: 'CIF',
  'in-warehouse': 'In-warehouse',
  delivered: 'Delivered',
} as const;

export const REGIONS = {
  global: 'Global',
  asia: 'Asia',
  'north-east-asia': 'North-East Asia',
  'south-east-asia': 'South-East Asia',
  europe: 'Europe',
  'north-america': 'North America',
  'south-america': 'South America',
  africa: 'Africa',
  oceania: 'Oceania',
} as const;

export const COUNTRIES = {
  argentina: 'Argentina',
  australia: 'Australia',
  belgium: 'Belgium',
  brazil: 'Brazil',
  canada: 'Canada',
  chile: 'Chile',
  china: 'China',
  czechia: 'Czechia',
  'dr-congo': 'DR Congo',
  finland: 'Finland',
  france: 'France',
  gabon: 'Gabon',
  germany: 'Germany',
  guinea: 'Guinea',
  hungary: 'Hungary',
  india: 'India',
  indonesia: 'Indonesia',
  japan: 'Japan',
  madagascar: 'Madagascar',
  malaysia: 'Malaysia',
  morocco: 'Morocco',
  mozambique: 'Mozambique',
  netherlands: 'Netherlands',
  'new-caledonia': 'New Caledonia',
  norway: 'Norway',
  philippines: 'Philippines',
  poland: 'Poland',
  'south-africa': 'South Africa',
  'south-korea': 'South Korea',
  sweden: 'Sweden',
  turkey: 'Turkey',
  'united-kingdom': 'United Kingdom',
  'united-states': 'United States',
  vietnam: 'Vietnam',
  zambia: 'Zambia',
  zimbabwe: 'Zimbabwe',
} as const;

export const TRADE_TYPES = {
  domestic: 'Domestic',
  export: 'Export',
  import: 'Import',
  seaborne: 'Seaborne',
} as const;
