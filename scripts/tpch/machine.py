"""What machine this is: for the records, and for what fits into its memory."""

import os
import pathlib
import platform
import subprocess


def description():
    return {
        "system": platform.platform(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": memory_bytes(),
        "load_average": os.getloadavg(),
    }


def memory_bytes():
    """The machine's memory, or what a container's limit leaves of it."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = text_of("/sys/fs/cgroup/memory.max").strip()
    return min(physical, int(limit)) if limit.isdigit() else physical


def cpu_model():
    for line in text_of("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return platform.machine()


def text_of(path):
    """Empty where there is no such file: systems differ in what they tell."""
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
