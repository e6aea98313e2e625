// SPDX-License-Identifier: Apache-2.0
// verbs_script: plays verb scripts (script.h) between two hosts and prints what happened, in words
// that do not depend on the RDMA stack. An ordinary verbs program.
//   verbs_script right [--port N]                          serves one run
//   verbs_script left ADDRESS [--port N] [--only GLOB]     plays all scripts, or those that match
//   verbs_script list
// The left side prints for each script `== NAME` and then what both sides say, and `N scripts` at
// the end. Exit status 0 when all were played, however they went; 2 when they could not be.
#include <fnmatch.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <string>

#include "tests/interop/rdma_check/control.h"
#include "tests/interop/rdma_check/device.h"
#include "tests/interop/rdma_check/failure.h"
#include "tests/interop/verbs_script/player.h"
#include "tests/interop/verbs_script/script.h"

namespace rocegw::interop {
namespace {

constexpr uint16_t kDefaultPort = 7490;

// What a step came to, or why it could not be taken: that is told as well, and the other side's
// steps go on.
template <typename Step>
std::string Told(bool left, bool* broken, Step step) {
  if (*broken) return "";
  try {
    return step();
  } catch (const PeerFailure&) {
    throw;
  } catch (const Failure& failure) {
    *broken = true;
    return std::string(left ? "L " : "R ") + "failed: " + failure.what() + "\n";
  }
}

// Both sides run this at the same time; the left one prints.
void PlayScript(Control& control, ibv_context* context, bool left, const Script& script) {
  Player player(control, context, left);
  bool broken = false;
  if (left) std::cout << "== " << script.name << std::endl;
  const auto step = [&](char side, const auto& action) {
    const bool mine = side == 0 || (side == 'L') == left;
    const std::string own = mine ? Told(left, &broken, action) : "";
    const std::string theirs = control.Exchange(own);
    if (left) std::cout << own << theirs << std::flush;
  };
  for (const ScriptLine& line : Lines(script)) {
    if (line.verb == "qp") {
      step(0, [&] { return player.Connect(line); });
      continue;
    }
    step(line.side, [&] { return player.Play(line); });
    if (line.verb == "mr") player.ShareKeys();
  }
  step('L', [&] { return player.Finish(); });
  step('R', [&] { return player.Finish(); });
}

int Run(int fd, bool left, const std::string& only) {
  Control control(fd);
  const Owned<ibv_context> context = OpenDeviceOf(control.LocalAddress());
  const std::string theirs = control.Exchange(only);
  const std::string& glob = left ? only : theirs;
  size_t played = 0;
  for (const Script& script : AllScripts()) {
    if (fnmatch(glob.c_str(), script.name, 0) != 0) continue;
    PlayScript(control, context.get(), left, script);
    ++played;
  }
  if (left) std::cout << played << " scripts" << std::endl;
  return 0;
}

int Main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "list") {
    for (const Script& script : AllScripts()) std::cout << script.name << "\n";
    return 0;
  }
  const bool left = role == "left" && argc > 2;
  Check(left || role == "right", "usage: verbs_script left ADDRESS | right | list");
  uint16_t port = kDefaultPort;
  std::string only = "*";
  for (int i = left ? 3 : 2; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--port") == 0) {
      port = static_cast<uint16_t>(std::stoul(argv[i + 1]));
    } else if (std::strcmp(argv[i], "--only") == 0) {
      only = argv[i + 1];
    } else {
      Fail("unknown option ", argv[i]);
    }
  }
  if (left) return Run(Control::Connect(argv[2], port), true, only);
  const int listener = Control::Listen("", port);
  std::cout << "verbs_script: serving on port " << port << std::endl;
  const int fd = accept(listener, nullptr, nullptr);
  close(listener);
  CheckErrno(fd >= 0, "accept");
  return Run(fd, false, "");
}

}  // namespace
}  // namespace rocegw::interop

int main(int argc, char** argv) {
  try {
    return rocegw::interop::Main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "verbs_script: " << error.what() << "\n";
    return 2;
  }
}
