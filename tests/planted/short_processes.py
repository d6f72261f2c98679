# A program is started for each item.
# cause: short-processes
# says: true
# also: limiting-stage
import subprocess

for _ in range(40):
    subprocess.run(["true"], check=True)
