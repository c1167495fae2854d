// Starts programs and captures their output.
#pragma once

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"

namespace hone::test {

struct Finished {
  int code = -1;     // exit code; -1: ended by a signal
  std::string text;  // stdout and stderr
};

inline Finished finish(std::vector<std::string> command) {
  int pipe[2];
  if (::pipe(pipe) != 0) throw UserError("no pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], 2);
  ::posix_spawn_file_actions_addclose(&actions, pipe[0]);
  ::posix_spawn_file_actions_addclose(&actions, pipe[1]);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  Finished out;
  char buffer[4096];
  for (ssize_t n; error == 0 && (n = ::read(pipe[0], buffer, sizeof buffer)) > 0;)
    out.text.append(buffer, static_cast<std::size_t>(n));
  ::close(pipe[0]);
  if (error != 0) throw UserError(command[0], ": cannot be started");
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) out.code = WEXITSTATUS(status);
  return out;
}

}  // namespace hone::test
