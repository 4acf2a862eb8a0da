-- Work for sqlite3: a recursive query, an index, aggregates, JSON.
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)
insert into t select i, 'row ' || i, i * 1.5 from n;
create index x on t(b);
select count(*), sum(a), avg(c), max(b) from t where b like 'row 1%';
select group_concat(a) from (select a from t order by b desc limit 10);
select json_object('a', 1, 'b', json_array(1, 2));
update t set c = c + 1 where a % 2;
delete from t where a > 400;
select count(*), total(c) from t;
