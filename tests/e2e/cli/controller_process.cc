// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/cli/controller_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "gateway/base/unique_fd.h"

namespace rocegw::testing {
namespace {

constexpr int kPatienceMs = 20000;

std::string ReadAll(const std::string& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

// True once it said that it is ready; false when it ended instead.
bool WaitReady(int notify, int process) {
  pollfd fds[] = {{notify, POLLIN, 0}, {process, POLLIN, 0}};
  while (poll(fds, 2, kPatienceMs) > 0 && (fds[0].revents & POLLIN) != 0) {
    char text[1024];
    const ssize_t n = recv(notify, text, sizeof text, 0);
    if (n > 0 && std::string(text, static_cast<size_t>(n)).starts_with("READY=1\n")) return true;
  }
  return false;
}

}  // namespace

std::string ControllerTest::directory_;
pid_t ControllerTest::pid_ = -1;

Outcome RunShell(const std::string& directory, const std::string& command) {
  const std::string error_file = directory + "/stderr";
  const std::string line = "export HOME='" + directory + "' ROCEGW_CONFIG='" + directory +
                           "/config.yaml' ROCEGW_CONTROLLER='unix:" + directory +
                           "/state/admin.sock'; unset ROCEGW_CONTEXT ROCEGW_GRPC_SOCKET; { " +
                           command + "\n} 2>'" + error_file + "'";
  FILE* const pipe = popen(line.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  Outcome outcome;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    outcome.out.append(buffer, n);
  }
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.err = ReadAll(error_file);
  return outcome;
}

Outcome RunCtl(const std::string& directory, const std::string& arguments,
               const std::string& before) {
  return RunShell(directory, before + " " + ROCEGWCTL + " " + arguments);
}

void ControllerTest::SetUpTestSuite() {
  char pattern[] = "/tmp/rocegwctl-test-XXXXXX";
  ASSERT_NE(mkdtemp(pattern), nullptr);
  directory_ = pattern;
  Write("controller.yaml", "address: 127.0.0.1:0\nmetrics: {address: ''}\n");
  const UniqueFd notify(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = File("notify");
  std::strcpy(address.sun_path, path.c_str());
  ASSERT_EQ(bind(notify.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  pid_ = fork();
  if (pid_ == 0) {
    const int log = open(File("log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
    const std::string config = File("controller.yaml");
    const std::string state = File("state");
    execl(CONTROLLER_PROGRAM, CONTROLLER_PROGRAM, "--config", config.c_str(), "--state-dir",
          state.c_str(), nullptr);
    _exit(98);
  }
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  ASSERT_TRUE(WaitReady(notify.get(), process.get())) << ReadAll(File("log"));
}

void ControllerTest::TearDownTestSuite() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

std::string ControllerTest::Must(const std::string& arguments, const std::string& before) {
  const Outcome outcome = Ctl(arguments, before);
  EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "") << arguments;
  return outcome.out;
}

void ControllerTest::Write(const std::string& name, const std::string& text) {
  std::ofstream(File(name)) << text;
}

void ControllerTest::ExpectGolden(const std::string& name, const std::string& output) {
  std::string text = output;
  const std::pair<const char*, const char*> kVarying[] = {
      {"\"?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\"?", "UUID"},
      {"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\\.[0-9]+)?Z", "TIME"},
      {"\\(([0-9]+s|[0-9]+m[0-9]+s) ago\\)", "(AGO)"},
      {" +[0-9]+s(?=\n|  )", " AGE"},
      {"\\br[0-9]+\\b", "ETAG"},
      {"/tmp/rocegwctl-test-[^/]*", "DIRECTORY"},
      {"revision [0-9]+", "revision N"}};
  for (const auto& [what, with] : kVarying) text = std::regex_replace(text, std::regex(what), with);
  const std::string file = std::string(GOLDEN_DIR) + "/" + name;
  if (std::getenv("ROCEGW_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << text;
  EXPECT_EQ(text, ReadAll(file)) << name;
}

}  // namespace rocegw::testing
