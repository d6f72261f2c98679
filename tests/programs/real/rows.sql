create table rows (id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
insert into rows select i, printf('name %d', i * 7919 % 100003), i / 7.0 from n;
create index by_name on rows(name);
select count(*), sum(value), min(name), max(name) from rows;
select substr(name, -1) as last, count(*), round(avg(value), 3) from rows group by last order by last;
select id from rows where name like '%999%' order by value desc limit 5;
update rows set value = value + 1 where id % 3 = 0;
delete from rows where id % 7 = 0;
select count(*), round(total(value), 3) from rows;
select no_such_column from rows;
