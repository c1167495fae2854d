"""Processes that work off jobs. A job that ends its worker, or that has no end, becomes a result too."""

import collections
import multiprocessing
import os
import time
from multiprocessing import connection


def serve(pipe, function, options, directory):
    """A worker: works until it is told to end. It says what it is about to do, so that a crash is laid to the right account."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # warnings of the peers
    while (job := pipe.recv()) is not None:
        work, skip = job
        pipe.send(("done", function(work, options, skip, directory, lambda who: pipe.send(("at", who)))))


class Worker:
    def __init__(self, function, options, number, root):
        self.function, self.options, self.directory = function, options, os.path.join(root, str(number))
        self.start()

    def start(self):
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=serve, args=(other, self.function, self.options, self.directory), daemon=True)
        self.process.start()
        other.close()
        self.job, self.at = None, "start"

    def give(self, job, skip=frozenset()):
        self.job, self.at, self.since = (job, skip), "start", time.monotonic()
        self.pipe.send(self.job)

    def restart(self):
        self.process.kill()
        self.process.join()
        self.start()


def run_all(jobs, function, options, root, seconds, peers, lost, until=None):
    """Results of function(job, options, skip, directory, say), in the order in which they end. A job may take
    `seconds`. If a peer ended the worker, the job is repeated without it (`skip`); otherwise lost(job, at) is its
    result. After `until`, on the clock of time.monotonic(), no job is begun."""
    queue = collections.deque((job, frozenset()) for job in jobs)
    workers = [Worker(function, options, n, root) for n in range(options.workers)]
    busy = lambda: [w for w in workers if w.job]
    while queue or busy():
        if until and time.monotonic() > until:
            queue.clear()
        for w in workers:
            if not w.job and queue:
                w.give(*queue.popleft())
        connection.wait([w.pipe for w in busy()], timeout=1)
        for w in busy():
            try:
                while w.job and w.pipe.poll():
                    kind, value = w.pipe.recv()
                    if kind == "at":
                        w.at = value
                    else:
                        w.job = None
                        yield value
                late = w.job and time.monotonic() - w.since > seconds
            except (EOFError, ConnectionError):
                late = True
            if late:
                job, skip = w.job
                if w.at in peers:
                    queue.append((job, skip | {w.at}))
                else:
                    yield lost(job, w.at)
                w.restart()
    for w in workers:
        w.pipe.send(None)
