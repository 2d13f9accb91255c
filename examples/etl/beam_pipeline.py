"""Pictures through a model server into Parquet, by Apache Beam. See README.md."""

import argparse
import json

import apache_beam as beam
import pyarrow as pa
from apache_beam.io import fileio
from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions

from gantry_rows import COLUMNS, REQUIRED, ModelServer, PictureRows, is_picture, read_labels

TYPES = {"string": pa.string(), "int32": pa.int32(), "float32": pa.float32(), "float64": pa.float64()}
SCHEMA = pa.schema([pa.field(name, TYPES[kind], name not in REQUIRED) for name, kind in COLUMNS.items()])

FAILED = "failed"


class AskServer(beam.DoFn):
    """A picture in, its rows out; what has none goes to the output `failed` as `{item, message}`."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server

    def setup(self) -> None:
        self._pictures = PictureRows(self._server)

    def teardown(self) -> None:
        self._pictures.close()

    def process(self, file: fileio.ReadableFile):
        name = file.metadata.path
        try:
            yield from self._pictures.rows(name, file.read())
        except Exception as error:  # noqa: BLE001 - a picture at fault does not end the others
            yield beam.pvalue.TaggedOutput(FAILED, {"item": name, "message": str(error)})


def run(argv=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, help="glob of pictures, of any file system that Beam reads")
    parser.add_argument("--output", required=True, help="start of the names of the Parquet files")
    parser.add_argument("--errors", required=True, help="start of the names of the files with what failed, as JSON lines")
    parser.add_argument("--server", default="127.0.0.1:8000", help="host:port of the model server")
    parser.add_argument("--model", default="ppe_files")
    parser.add_argument("--labels", required=True, help="file with the name of a class on each line")
    parser.add_argument("--token", help="token of the server")
    args, rest = parser.parse_known_args(argv)
    server = ModelServer(args.server, args.model, read_labels(args.labels), args.token)
    options = PipelineOptions(rest)
    options.view_as(SetupOptions).save_main_session = True
    with beam.Pipeline(options=options) as pipeline:
        rows, failed = (
            pipeline
            | "list" >> fileio.MatchFiles(args.input)
            | "pictures" >> beam.Filter(lambda found: is_picture(found.path))
            | "spread" >> beam.Reshuffle()
            | "open" >> fileio.ReadMatches()
            | "ask" >> beam.ParDo(AskServer(server)).with_outputs(FAILED, main="rows")
        )
        _ = rows | "write" >> beam.io.WriteToParquet(args.output, SCHEMA, file_name_suffix=".parquet")
        _ = (
            failed
            | "as json" >> beam.Map(json.dumps)
            | "write errors" >> beam.io.WriteToText(args.errors, file_name_suffix=".jsonl")
        )


if __name__ == "__main__":
    run()
