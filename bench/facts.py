"""The machine and the date, as the first line of a result file."""
import datetime
import os
import pathlib


def facts():
    words = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        words.setdefault(key.strip(), value.strip())
    flags = set(words.get("flags", "").split())
    return {"date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            "cpu": words.get("model name"), "family": int(words.get("cpu family", 0)),
            "model": int(words.get("model", 0)), "processors": os.cpu_count(),
            "avx2": "avx2" in flags, "avx512": "avx512f" in flags}
