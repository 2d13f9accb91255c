"""Pictures through a model server into Parquet, by PySpark. See README.md."""

import argparse
from typing import Iterator
from urllib.parse import unquote, urlparse

from pyspark.sql import Row, SparkSession
from pyspark.sql import types as t

from gantry_rows import COLUMNS, REQUIRED, ModelServer, PictureRows, is_picture, read_labels

TYPES = {"string": t.StringType(), "int32": t.IntegerType(), "float32": t.FloatType(), "float64": t.DoubleType()}
SCHEMA = t.StructType([t.StructField(name, TYPES[kind], name not in REQUIRED) for name, kind in COLUMNS.items()])
OUTCOME = t.StructType(
    [
        t.StructField("rows", t.ArrayType(SCHEMA), True),
        t.StructField("item", t.StringType(), False),
        t.StructField("message", t.StringType(), True),
    ]
)


def plain(path: str) -> str:
    """`file:/a b.jpg` as `/a b.jpg`; URLs of other file systems as they are."""
    url = urlparse(path)
    return unquote(url.path) if url.scheme == "file" else path


def ask_server(server: ModelServer):
    def outcomes(pictures: Iterator[Row]) -> Iterator[tuple]:
        asked = PictureRows(server)
        try:
            for picture in pictures:
                name = plain(picture.path)
                try:
                    rows = asked.rows(name, bytes(picture.content))
                    yield [tuple(row[column] for column in COLUMNS) for row in rows], name, None
                except Exception as error:  # noqa: BLE001 - a picture at fault does not end the others
                    yield None, name, str(error)
        finally:
            asked.close()

    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, help="folder of pictures, of any file system that Spark reads")
    parser.add_argument("--output", required=True, help="folder that gets the Parquet files")
    parser.add_argument("--errors", required=True, help="folder that gets what failed, as JSON lines")
    parser.add_argument("--server", default="127.0.0.1:8000", help="host:port of the model server")
    parser.add_argument("--model", default="ppe_files")
    parser.add_argument("--labels", required=True, help="file with the name of a class on each line")
    parser.add_argument("--token", help="token of the server")
    parser.add_argument("--partitions", type=int, default=8, help="parts that are worked on side by side")
    args = parser.parse_args()
    server = ModelServer(args.server, args.model, read_labels(args.labels), args.token)
    spark = SparkSession.builder.appName("gantry-etl").getOrCreate()
    try:
        spark.sparkContext.addPyFile(__file__.replace("spark_pipeline.py", "gantry_rows.py"))
        files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(args.input)
        pictures = files.select("path", "content").rdd.filter(lambda row: is_picture(row.path))
        outcomes = spark.createDataFrame(
            pictures.repartition(args.partitions).mapPartitions(ask_server(server)), OUTCOME
        ).cache()
        outcomes.filter("rows is not null").selectExpr("inline(rows)").write.parquet(args.output)
        outcomes.filter("rows is null").select("item", "message").write.json(args.errors)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
