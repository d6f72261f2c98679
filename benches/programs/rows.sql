create table t (a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 250000)
insert into t select i, printf('row %08d', i * 7919 % 250007), i / 3.0 from n;
create index t_b on t (b);
select count(*), sum(c), max(b) from t where b like 'row 0%5%';
select substr(b, 1, 7) as g, sum(c) from t group by g order by g;
