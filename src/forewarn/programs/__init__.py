"""Programs that forewarn runs: handlers of the agent, command drivers, hooks, and guests of rehearsals.

`program` has the common part: the invocation, the outcome, and how to end a program. Each program leads a
process group. forewarn ends the whole group, first with SIGTERM and then with SIGKILL. There are two ways to
run a program:

- `kept_program`, for the agent. The program outlives the agent, and the next agent reads how it ended. Its
  parent is a keeper process, which writes the exit code to a file. Output goes to a file as well, because
  background jobs may print after the keeper has ended. This also works on Windows.
- `watched_program`, for drivers and hooks. The caller waits for the answer, which the program prints. Its
  parent is the server, which learns the exit code even if the disk is full. Output goes to pipes and the
  server keeps a part of it in memory. Neither a full disk nor a flood of output changes the result of a step.
"""
