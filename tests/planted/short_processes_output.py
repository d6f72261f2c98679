# A program is started for each item, and what it says is read.
# cause: short-processes
# says: true
# also: limiting-stage
import subprocess

for item in range(60):
    subprocess.run(["true", str(item)], capture_output=True, check=True)
