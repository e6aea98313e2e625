// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fleet/controller_program.h"

#include <fcntl.h>
#include <grpcpp/security/credentials.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "gateway/base/unique_fd.h"

namespace rocegw::testing {

void GiveUp(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

std::vector<int> FreeTcpPorts(size_t count) {
  std::vector<UniqueFd> held;
  std::vector<int> ports;
  for (size_t i = 0; i < count; ++i) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      GiveUp("no free port");
    }
    ports.push_back(ntohs(address.sin_port));
    held.push_back(std::move(fd));
  }
  return ports;
}

ControllerProgram::ControllerProgram(Options options) : options_(std::move(options)) {
  std::string all;
  for (const int port : options_.all_ports)
    all += (all.empty() ? "" : ", ") + ("\"127.0.0.1:" + std::to_string(port)) + "\"";
  std::ofstream config(options_.directory + "/controller.yaml");
  config << "state_dir: " << state_dir() << "\n"
         << "address: " << address() << "\n"
         << "names: [\"127.0.0.1\"]\n"
         << "controllers: [" << (all.empty() ? "\"" + address() + "\"" : all) << "]\n"
         << "metrics: {address: \"\"}\n"
         << options_.more;
}

ControllerProgram::~ControllerProgram() {
  if (running()) Kill();
}

void ControllerProgram::Start() {
  const std::string config = options_.directory + "/controller.yaml";
  const std::string log = log_file();
  const pid_t parent = getpid();
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ < 0) GiveUp("cannot fork");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  execl(options_.program.c_str(), options_.program.c_str(), "--config", config.c_str(), nullptr);
  _exit(127);
}

void ControllerProgram::Kill() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void ControllerProgram::Stop() {
  kill(pid_, SIGSTOP);
  // Its other threads may run on for a moment, and answer.
  waitpid(pid_, nullptr, WUNTRACED);
}

std::optional<int> ControllerProgram::Ended() {
  int status = 0;
  if (pid_ <= 0 || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return status;
}

void ControllerProgram::Continue() { kill(pid_, SIGCONT); }

std::shared_ptr<grpc::Channel> ControllerProgram::Admin() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + state_dir() + "/admin.sock",
                                   grpc::experimental::LocalCredentials(UDS), arguments);
}

double ControllerProgram::PeakMemory() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::atof(line.c_str() + 6) / 1024;
  }
  return 0;
}

std::unique_ptr<grpc::ClientContext> PatientContext(std::chrono::milliseconds deadline) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + deadline);
  context->set_wait_for_ready(true);
  return context;
}

}  // namespace rocegw::testing
