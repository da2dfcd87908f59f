-- Functions that PostGraphile shows as fields: the selections and ranges of the workloads.
create function bench_prices(codes text[]) returns setof price language sql stable as
  $$ select * from price where code = any(codes) order by code $$;
create function bench_market(slug text) returns setof price language sql stable as
  $$ select p.* from price p join market m on m.id = p.market_id where m.slug = bench_market.slug order by p.code $$;
create function price_points(p price, from_date date, to_date date) returns setof series language sql stable as
  $$ select * from series s where s.price_id = p.id and s.date between from_date and to_date order by s.date $$;
