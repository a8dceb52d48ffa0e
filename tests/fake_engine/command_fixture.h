// The real `opledger` command, run in a folder of the test's own, with its exit code and what it printed.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "session_fixture.h"

namespace opledger::fake {

class CommandTest : public FakeSession {
 protected:
  [[nodiscard]] std::string record_path() const { return folder_ + "/record.json"; }
  [[nodiscard]] std::string record_text() const {
    const Result<std::string> text = text_of(record_path());
    return text ? *text : "";
  }
  [[nodiscard]] std::string output() const { return *text_of(folder_ + "/out.txt"); }
  [[nodiscard]] std::string errors() const { return *text_of(folder_ + "/err.txt"); }

  /// Starts a program by its path, or `opledger` when the first word is none.
  pid_t start(std::vector<std::string> arguments) const {
    if (arguments.front().rfind('/', 0) != 0) arguments.insert(arguments.begin(), OPLEDGER_COMMAND);
    const pid_t id = ::fork();
    if (id != 0) return id;
    ::setenv("OPLEDGER_CACHE", (folder_ + "/cache").c_str(), 1);
    ::setenv("OPLEDGER_LOCK", (folder_ + "/lock").c_str(), 1);
    if (std::freopen((folder_ + "/out.txt").c_str(), "w", stdout) == nullptr) ::_exit(99);
    if (std::freopen((folder_ + "/err.txt").c_str(), "w", stderr) == nullptr) ::_exit(99);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(99);
  }
  static int exit_of(pid_t id) {
    int status = 0;
    ::waitpid(id, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
};

}  // namespace opledger::fake
