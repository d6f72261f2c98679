CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT, place INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1800000)
	INSERT INTO rows SELECT i, 'item ' || (i * 7919 % 1800017), i % 1009 FROM n;
CREATE INDEX by_name ON rows (name);
SELECT count(*), sum(length(name)) FROM rows WHERE name LIKE '%77%';
SELECT count(*) FROM (SELECT place, group_concat(name) AS names FROM rows GROUP BY place ORDER BY names);
