"""What became of the checks of a suite."""

import json
import traceback


def tell(checks):
    """Runs all of them and prints a JSON object: name of each -> "ok", or what went wrong."""
    outcome = {}
    for check in checks:
        try:
            check()
            outcome[check.__name__] = "ok"
        except Exception:
            outcome[check.__name__] = traceback.format_exc(limit=-3)
    print(json.dumps(outcome))
