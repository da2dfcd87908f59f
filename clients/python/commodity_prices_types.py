"""Types of the records of the Commodity Prices Service, version 3, for type checkers.

Generated from openapi.yaml. PriceRecord is a price of any market; a market has its own type, such
as NickelPriceRecord. Decimals are float here; with Client(decimal=True) every number is a
decimal.Decimal, and with decimalsAsText decimals are str.
"""

from __future__ import annotations

from typing import Literal, Optional, TypedDict, Union


class SpecificationEntry(TypedDict):
    """A property without a filter, such as VAT or basis"""
    name: str
    value: str
    order: int


class Product(TypedDict):
    id: str
    name: str
    alias: str
    chemicalCode: str
    isSustainable: bool


class Reference(TypedDict):
    """A value of a dimension"""
    id: str
    name: str


class Frequency(TypedDict):
    """Assessment frequency of the price"""
    id: str
    name: str
    shortName: Optional[str]


class UnitOfMeasure(TypedDict):
    """The unit of the numbers; Percent for a payable"""
    id: str
    name: str
    symbol: str


class Currency(TypedDict):
    """The currency of the numbers"""
    id: str
    name: str
    iso: str
    symbol: str


class PayableReferenceEarlierItem(TypedDict):
    code: str
    side: str
    statistic: str
    element: str
    validFrom: str


class PayableReference(TypedDict):
    code: str
    side: str
    statistic: str
    element: str
    validFrom: str
    earlier: list[PayableReferenceEarlierItem]


class ConversionFrom(TypedDict):
    """Currency and unit of the price"""
    currency: Optional[str]
    unitOfMeasure: str


class ConversionTo(TypedDict):
    """Requested currency and unit"""
    currency: Optional[str]
    unitOfMeasure: str


class ConversionUnitFactor(TypedDict):
    multiply: str
    divide: str


_Conversion = TypedDict("_Conversion", {
    "status": Literal["converted", "unchanged", "not-applicable", "refused", "partial"],
    "reason": Optional[Literal["payable", "incompatible-unit", "no-rate", "no-vat-rate"]],
    "from": ConversionFrom,
    "to": ConversionTo,
    "unitFactor": Optional[ConversionUnitFactor],
    "source": Optional[str],
    "rounding": Optional[str],
})


class Conversion(_Conversion, total=False):
    """How to recompute the figures of the record by hand"""
    rates: Literal["period-mean"]
    vat: Literal["excluded", "included", "unknown"]


class SummaryAssessment(TypedDict):
    date: str
    mid: Optional[float]


class SummaryChange(TypedDict):
    """A difference, and the same in percent; of a payable in percentage points only"""
    absolute: float
    percent: Optional[float]
    baseDate: str


class SummaryChanges(TypedDict):
    previous: Optional[SummaryChange]
    week: Optional[SummaryChange]
    fortnight: Optional[SummaryChange]
    month: Optional[SummaryChange]
    quarter: Optional[SummaryChange]
    halfYear: Optional[SummaryChange]
    year: Optional[SummaryChange]
    yearToDate: Optional[SummaryChange]


class Summary(TypedDict):
    """The latest assessment up to dateTo and its changes"""
    latest: Optional[SummaryAssessment]
    previous: Optional[SummaryAssessment]
    changes: SummaryChanges


PointRates = TypedDict("PointRates", {
    "date": str,
    "base": str,
    "from": str,
    "to": str,
})


class PointMeanRate(TypedDict):
    """The mean rate that a converted mean used"""
    firstDate: str
    lastDate: str
    days: int
    rate: str


class _Point(TypedDict):
    date: str
    low: Optional[float]
    mid: Optional[float]
    high: Optional[float]
    publishedAt: str
    corrections: int


class Point(_Point, total=False):
    """One assessment"""
    fx: PointRates
    fxMean: PointMeanRate
    vatRate: str
    periodStart: str
    periodEnd: str
    observations: int
    observationsLeftOut: int
    movingAverage: Optional[float]
    conversionReason: Literal["no-rate", "no-vat-rate"]


class _PriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class PriceRecord(_PriceRecord, total=False):
    """A price of any market"""
    purity: Optional[Reference]
    grade: Optional[Reference]
    tradeType: Optional[Reference]
    conversion: Conversion
    summary: Summary
    capacity: Optional[Reference]
    cellFormat: Optional[Reference]
    meshSize: Optional[Reference]
    service: Optional[Reference]
    subProduct: Optional[Reference]
    feedstock: Optional[Reference]


class _LithiumPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    purity: Optional[Reference]
    grade: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    tradeType: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class LithiumPriceRecord(_LithiumPriceRecord, total=False):
    """A price of Lithium"""
    conversion: Conversion
    summary: Summary


class _ManganesePriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    purity: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    tradeType: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class ManganesePriceRecord(_ManganesePriceRecord, total=False):
    """A price of Manganese"""
    conversion: Conversion
    summary: Summary


class _LithiumIonBatteryPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    capacity: Optional[Reference]
    cellFormat: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    tradeType: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class LithiumIonBatteryPriceRecord(_LithiumIonBatteryPriceRecord, total=False):
    """A price of Lithium-ion battery"""
    conversion: Conversion
    summary: Summary


class _CobaltPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    purity: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class CobaltPriceRecord(_CobaltPriceRecord, total=False):
    """A price of Cobalt"""
    conversion: Conversion
    summary: Summary


class _AnodesPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    purity: Optional[Reference]
    capacity: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class AnodesPriceRecord(_AnodesPriceRecord, total=False):
    """A price of Anodes"""
    conversion: Conversion
    summary: Summary


class _CathodesPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    capacity: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class CathodesPriceRecord(_CathodesPriceRecord, total=False):
    """A price of Cathodes"""
    conversion: Conversion
    summary: Summary


class _ElectrolytePriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    purity: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class ElectrolytePriceRecord(_ElectrolytePriceRecord, total=False):
    """A price of Electrolyte"""
    conversion: Conversion
    summary: Summary


class _NaturalGraphitePriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    purity: Optional[Reference]
    meshSize: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class NaturalGraphitePriceRecord(_NaturalGraphitePriceRecord, total=False):
    """A price of Natural graphite"""
    conversion: Conversion
    summary: Summary


class _RareEarthsPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    purity: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class RareEarthsPriceRecord(_RareEarthsPriceRecord, total=False):
    """A price of Rare earths"""
    conversion: Conversion
    summary: Summary


class _SyntheticGraphitePriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    purity: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    service: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class SyntheticGraphitePriceRecord(_SyntheticGraphitePriceRecord, total=False):
    """A price of Synthetic graphite"""
    conversion: Conversion
    summary: Summary


class _RecyclingPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    subProduct: Optional[Reference]
    feedstock: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class RecyclingPriceRecord(_RecyclingPriceRecord, total=False):
    """A price of Recycling"""
    conversion: Conversion
    summary: Summary


class _NickelPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    purity: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    service: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class NickelPriceRecord(_NickelPriceRecord, total=False):
    """A price of Nickel"""
    conversion: Conversion
    summary: Summary


class _AluminiumPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class AluminiumPriceRecord(_AluminiumPriceRecord, total=False):
    """A price of Aluminium"""
    conversion: Conversion
    summary: Summary


class _BindersAndAdditivesPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class BindersAndAdditivesPriceRecord(_BindersAndAdditivesPriceRecord, total=False):
    """A price of Binders and additives"""
    conversion: Conversion
    summary: Summary


class _PrecursorPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class PrecursorPriceRecord(_PrecursorPriceRecord, total=False):
    """A price of Precursor"""
    conversion: Conversion
    summary: Summary


class _SolventPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class SolventPriceRecord(_SolventPriceRecord, total=False):
    """A price of Solvent"""
    conversion: Conversion
    summary: Summary


class _CopperPriceRecord(TypedDict):
    code: str
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]
    series: list[Point]


class CopperPriceRecord(_CopperPriceRecord, total=False):
    """A price of Copper"""
    conversion: Conversion
    summary: Summary


class WarningStretchesWithoutRateItem(TypedDict):
    firstDate: str
    lastDate: str
    points: int


class _Warning(TypedDict):
    code: str
    pointer: str
    detail: str
    suggestions: list[str]


class Warning(_Warning, total=False):
    """A warning; further members depend on `code`"""
    priceCode: str
    existsSinceRevision: str
    existsSince: str
    currency: str
    firstDateWithoutRate: Optional[str]
    lastDateWithoutRate: Optional[str]
    lastDateWithRate: Optional[str]
    pointsWithoutRate: int
    pointsRequested: int
    stretchesWithoutRate: list[WarningStretchesWithoutRateItem]
    moreStretches: int


class Metadata(TypedDict):
    market: str
    revision: str
    asOf: str
    count: int
    nextCursor: Optional[str]
    warnings: list[Warning]


class Matched(TypedDict):
    """A matching attribute"""
    field: str
    value: str
    match: Literal["exact", "prefix", "inside", "similar"]


class _SearchResult(TypedDict):
    market: str
    code: str
    name: str
    shortName: Optional[str]
    matched: list[Matched]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    nextExpectedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    reference: Optional[PayableReference]


class SearchResult(_SearchResult, total=False):
    """A price; it has the dimensions of its market"""
    purity: Optional[Reference]
    grade: Optional[Reference]
    capacity: Optional[Reference]
    cellFormat: Optional[Reference]
    meshSize: Optional[Reference]
    subProduct: Optional[Reference]
    feedstock: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    tradeType: Optional[Reference]
    service: Optional[Reference]


class FilterValue(TypedDict):
    id: str
    name: str
    prices: int


class CurrencyEntry(TypedDict):
    id: str
    iso: str
    name: str
    symbol: str
    firstRateDate: Optional[str]
    lastRateDate: Optional[str]


class UnitEntry(TypedDict):
    id: str
    name: str
    symbol: str
    dimension: str
    factor: str
    rec20: Optional[str]


class DueDay(TypedDict):
    """A day on which a price is due, or would be"""
    date: str
    dueAt: Optional[str]
    status: str
    holiday: Optional[str]
    movedFrom: Optional[str]


class DuePrice(TypedDict):
    """A price with its due days"""
    market: str
    code: str
    name: str
    calendar: Optional[str]
    reason: Optional[str]
    nextExpectedAt: Optional[str]
    lastAssessedAt: Optional[str]
    latestPublishedAt: Optional[str]
    lateFrom: Optional[str]
    lateBy: Optional[str]
    sample: bool
    days: list[DueDay]


class RateEntryLegs(TypedDict):
    base: str
    quote: str


class RateEntry(TypedDict):
    """Conversions use the two legs, never the rounded rate"""
    date: str
    rate: str
    legs: RateEntryLegs


class MeLimits(TypedDict):
    """The limits of the credential"""
    requestsPerMinute: Optional[int]
    burst: Optional[int]
    concurrent: Optional[int]


class Me(TypedDict):
    kind: Literal["key", "token"]
    id: str
    scopes: list[str]
    markets: list[str]
    expiresAt: Optional[str]
    limits: MeLimits


class OpenMarket(TypedDict):
    """A market that the credential can read"""
    slug: str
    name: str
    scope: str
    filters: list[str]
    prices: int
    firstDate: Optional[str]
    lastDate: Optional[str]
    latestPublishedAt: Optional[str]
    authorized: Literal[True]


class ClosedMarket(TypedDict):
    """A market that the credential cannot read: its names and the required scope"""
    slug: str
    name: str
    scope: str
    authorized: Literal[False]


MarketSummary = Union[OpenMarket, ClosedMarket]


class _PriceState(TypedDict):
    name: str
    shortName: Optional[str]
    specification: list[SpecificationEntry]
    assessmentLaunchedAt: Optional[str]
    product: Product
    priceCategory: Reference
    frequency: Frequency
    unitOfMeasure: UnitOfMeasure
    currency: Optional[Currency]
    priceType: Reference
    observes: str
    vatCountry: Optional[str]
    reference: Optional[PayableReference]


class PriceState(_PriceState, total=False):
    """The record of a price without its points, with the dimensions of its market"""
    purity: Optional[Reference]
    grade: Optional[Reference]
    capacity: Optional[Reference]
    cellFormat: Optional[Reference]
    meshSize: Optional[Reference]
    subProduct: Optional[Reference]
    feedstock: Optional[Reference]
    incoterm: Optional[Reference]
    country: Optional[Reference]
    region: Optional[Reference]
    tradeType: Optional[Reference]
    service: Optional[Reference]


class PriceAddedChange(TypedDict):
    """A new price"""
    seq: str
    recordedAt: str
    operation: Literal["price-added"]
    market: str
    code: str
    date: None
    revision: str
    before: None
    after: PriceState


class PriceChangedChange(TypedDict):
    """A price with changed attributes"""
    seq: str
    recordedAt: str
    operation: Literal["price-changed"]
    market: str
    code: str
    date: None
    revision: str
    before: PriceState
    after: PriceState


class PointState(TypedDict):
    """The value of a point, in the currency and unit of its price"""
    low: Optional[float]
    mid: float
    high: Optional[float]
    publishedAt: str
    corrections: int


class PublishedChange(TypedDict):
    """A new point"""
    seq: str
    recordedAt: str
    operation: Literal["published"]
    market: str
    code: str
    date: str
    revision: str
    before: None
    after: PointState


class CorrectedChange(TypedDict):
    """A point with a corrected value"""
    seq: str
    recordedAt: str
    operation: Literal["corrected"]
    market: str
    code: str
    date: str
    revision: str
    before: PointState
    after: PointState


class WithdrawnChange(TypedDict):
    """A withdrawn point or price"""
    seq: str
    recordedAt: str
    operation: Literal["withdrawn"]
    market: str
    code: str
    date: Optional[str]
    revision: str
    before: Union[PointState, PriceState]
    after: None


Change = Union[PriceAddedChange, PriceChangedChange, PublishedChange, CorrectedChange, WithdrawnChange]


class CalculationReason(TypedDict):
    code: str
    input: str
    detail: str


class CalculationResultStepsItem(TypedDict):
    text: str
    exact: str
    unit: str


class _CalculationResult(TypedDict):
    anchor: Optional[str]
    value: Optional[float]
    exact: Optional[str]
    unit: str
    status: str
    reasons: list[CalculationReason]
    formula: str
    rounding: str


class CalculationResult(_CalculationResult, total=False):
    """The result for one anchor, with its receipt"""
    inputs: object
    steps: list[CalculationResultStepsItem]
