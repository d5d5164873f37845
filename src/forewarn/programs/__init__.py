"""Programs that forewarn runs for its users: started, watched and ended, for agent, drivers and rehearsals.

What every program has in common is in `program`: what is run, how it ended, that it leads a process group
of its own, and that it is ended with this group, first asked and then forced. It is run in one of two ways,
which differ in what must survive the process that has started it:

- `kept_program`, for the agent: the program outlives the agent, and the next agent learns how it ended. Its
  parent is a keeper, a process of its own, which leaves the exit code in a file. Output goes to a file, for
  jobs that the program leaves behind may print long after the keeper has ended. It also works on Windows.
- `watched_program`, for drivers and hooks: the caller waits for the answer, which the program prints. Its
  parent is the server, which knows the exit code although the disk is full. Output goes to pipes of which the
  server keeps a part in memory, so that neither a full disk nor a flood of output changes how a step ends.
"""
