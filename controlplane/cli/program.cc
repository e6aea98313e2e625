// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/program.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>

namespace rocegw::cli {
namespace {

constexpr size_t kUsualLine = 80;
constexpr std::chrono::seconds kUsualTimeout(10);
// Longest timeout that servers accept for a unary call.
constexpr std::chrono::seconds kMostTimeout(60);
constexpr std::chrono::minutes kUsualPatience(5);

}  // namespace

CLI::App* Program::Add(CLI::App& to, const std::string& name, const std::string& help,
                       const std::string& examples, std::function<int()> work) {
  CLI::App* const command = to.add_subcommand(name, help);
  if (!examples.empty()) command->footer("Examples:\n" + examples);
  if (work) {
    command->callback([this, work = std::move(work)] { run = work; });
  } else {
    command->require_subcommand(1);
  }
  return command;
}

CallResult Program::Open() {
  if (rpc_ != nullptr) return {};
  if (auto result = ChooseEndpoint(options.choice, endpoint_); !result.ok()) return result;
  auto timeout = options.timeout;
  if (timeout.count() == 0) timeout = kUsualTimeout;
  auto rpc =
      std::make_unique<Rpc>(endpoint_, std::min<std::chrono::milliseconds>(timeout, kMostTimeout));
  if (auto result = rpc->Connect(); !result.ok()) return result;
  rpc_ = std::move(rpc);
  return {};
}

CallResult Program::OpenController() {
  // Checked before connecting, so that the error appears even if no gateway runs.
  if (rpc_ == nullptr) {
    if (auto result = ChooseEndpoint(options.choice, endpoint_); !result.ok()) return result;
    if (is_gateway()) {
      return {kUsage,
              "this asks a controller, and none is chosen: no " + std::string(kAdminSocket) +
                  " here; name one with --context (rocegwctl config set-context) or --controller",
              {}};
    }
  }
  return Open();
}

size_t Program::line_limit() const {
  // Output for programs is not truncated.
  if (wide() || isatty(STDOUT_FILENO) != 1) return 0;
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > kUsualLine;
  return known ? size.ws_col : kUsualLine;
}

bool Program::colour() {
  const char* const no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

int64_t Program::Now() { return static_cast<int64_t>(std::time(nullptr)); }

std::chrono::milliseconds Program::patience() const {
  return options.timeout.count() == 0 ? kUsualPatience : options.timeout;
}

int Fail(const CallResult& result) {
  std::cout.flush();
  std::cerr << "rocegwctl: " << result.text << "\n";
  return result.code;
}

int FailUsage(const std::string& text) { return Fail({kUsage, text, {}}); }

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_) std::cerr << "\r\x1b[K" << std::flush;
}

void Progress::Show(const std::string& text) {
  if (!terminal_) return;
  shown_ = true;
  std::cerr << "\r\x1b[K" << text.substr(0, kUsualLine - 1) << std::flush;
}

}  // namespace rocegw::cli
