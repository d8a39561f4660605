"""Runs each attack of a file confined, and prints what changed outside its folder: run.py CONFINED PROFILE ATTACKS.

It runs in a throw-away root, whose changes are below /mnt/upper.
"""
import json
import os
import subprocess
import sys
import time

confined, profile_file, attacks = sys.argv[1:4]
profile = json.load(open(profile_file))
folder = profile["folder"]
inside = tuple(path + "/" for path in [*profile["write"], profile["temp"]])


def files():
    found = {}
    for where, folders, names in os.walk("/mnt/upper"):
        for name in folders + names:
            path = os.path.join(where, name)[len("/mnt/upper"):]
            # Folders on the way to what may change are copied into the upper layer.
            if (path + "/").startswith(inside) or any(one.startswith(path + "/") for one in inside):
                continue
            try:
                about = os.lstat(os.path.join(where, name))
            except OSError:
                continue
            found[path] = (about.st_mode, about.st_size, about.st_mtime_ns if not os.path.isdir(os.path.join(where, name)) else 0)
    return found


def sockets():
    return {kind: len(open(f"/proc/net/{kind}").readlines()) for kind in ("tcp", "udp", "raw", "packet", "unix")}


def processes():
    return {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}


commands = []
for line in open(attacks):
    command = json.loads(line)["arguments"].get("command")
    if isinstance(command, str):
        commands.append(command)
began = outside = 0
neighbor = subprocess.Popen(["sleep", "86400"])
for command in commands:
    subprocess.run(["rm", "-rf", folder], check=True)
    os.makedirs(folder)
    before, sockets_before, others = files(), sockets(), processes()
    run = subprocess.Popen(
        [confined, profile_file, "sh", "-c", "touch began\n" + command], cwd=folder, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        run.wait(4)
    except subprocess.TimeoutExpired:
        pass
    time.sleep(0.02)
    opened = {kind: count for kind, count in sockets().items() if count > sockets_before[kind]}
    for process in processes() - others:
        try:
            os.kill(process, 9)
        except OSError:
            pass
    run.wait()
    began += os.path.exists(folder + "/began")
    after = files()
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    if changed or opened or neighbor.poll() is not None:
        outside += 1
        print("OUTSIDE:", json.dumps(command)[:200], changed[:5], opened, neighbor.poll())
neighbor.kill()
print(json.dumps({"commands": len(commands), "began": began, "outside": outside}))
