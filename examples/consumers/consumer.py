"""Prints every result once, one JSON object per line. See README.md."""

import argparse
import signal
import sys
from collections import OrderedDict

from confluent_kafka import Consumer, KafkaError


class RecentIds:
    """Ids seen lately, bounded: enough to recognise the repetitions that retries make."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._ids: "OrderedDict[str, None]" = OrderedDict()

    def add(self, record_id: str) -> bool:
        """Returns whether the id is new."""
        if record_id in self._ids:
            return False
        self._ids[record_id] = None
        if len(self._ids) > self._capacity:
            self._ids.popitem(last=False)
        return True


def headers_of(message) -> "dict[str, str]":
    return {name: value.decode() for name, value in message.headers() or [] if value is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", default="127.0.0.1:9092")
    parser.add_argument("--topic", default="gantry.detections.v1")
    parser.add_argument("--group", default="gantry-example-py")
    args = parser.parse_args()

    consumer = Consumer(
        {
            "bootstrap.servers": args.brokers,
            "group.id": args.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([args.topic])
    # So that it ends in good order below, with the last commit.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    seen = RecentIds(100_000)
    try:
        while True:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error():
                if message.error().code() != KafkaError._PARTITION_EOF:
                    print(message.error(), file=sys.stderr)
                continue
            headers = headers_of(message)
            known = headers.get("ce_type") == "gantry.detections.v1" and "ce_id" in headers
            if known and seen.add(headers["ce_id"]):
                print(message.value().decode(), flush=True)
            # After the effect, so that a crash in between repeats the record and does not lose it.
            consumer.commit(message, asynchronous=True)
    except KeyboardInterrupt:
        pass
    finally:
        consumer.close()


if __name__ == "__main__":
    main()
