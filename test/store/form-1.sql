-- A store as the first form of the file had it, with two results, an event and a gap.
PRAGMA journal_mode = WAL;
CREATE TABLE records (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  type TEXT NOT NULL,
  camera TEXT NOT NULL,
  seq INTEGER NOT NULL,
  time_ms INTEGER NOT NULL,
  sink TEXT,
  value BLOB NOT NULL
) STRICT;
CREATE INDEX results ON records (time_ms, camera, seq) WHERE type = 'gantry.detections.v1';
CREATE INDEX events ON records (time_ms) WHERE type <> 'gantry.detections.v1';
CREATE TABLE runs (epoch TEXT PRIMARY KEY, first INTEGER NOT NULL) STRICT;
CREATE TABLE sinks (sink TEXT PRIMARY KEY, settled INTEGER NOT NULL) STRICT;
CREATE TABLE gaps (
  sink TEXT NOT NULL,
  camera TEXT NOT NULL,
  dropped INTEGER NOT NULL,
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL,
  PRIMARY KEY (sink, camera)
) STRICT;
CREATE TABLE forgotten (camera TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT;
CREATE TABLE coverage (
  camera TEXT NOT NULL,
  from_ms REAL NOT NULL,
  to_ms REAL NOT NULL,
  span TEXT NOT NULL,
  PRIMARY KEY (camera, from_ms)
) STRICT, WITHOUT ROWID;
CREATE INDEX coverage_by_end ON coverage (to_ms);
INSERT INTO records VALUES
  (1024, 'gate/e/1', 'gantry.detections.v1', 'gate', 1, 1000, NULL, CAST('{"seq":1}' AS BLOB)),
  (2048, 'gate/e/2', 'gantry.detections.v1', 'gate', 2, 2000, NULL, CAST('{"seq":2}' AS BLOB)),
  (2049, 'gate/e/event', 'gantry.coverage.v1', 'gate', 0, 2000, NULL, CAST('{}' AS BLOB));
INSERT INTO runs VALUES ('e', 1);
INSERT INTO sinks VALUES ('kafka', 1024);
INSERT INTO gaps VALUES ('kafka', 'gate', 3, 5, 9);
INSERT INTO coverage VALUES ('gate', 1000.0, 2000.0, '{"cameraId":"gate","fromMs":1000,"toMs":2000,"cause":null}');
PRAGMA user_version = 1;
