// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hand_over/handed_sessions.h"

#include <sys/socket.h>

#include <cstdlib>

#include "gateway/hand_over/state_stream.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

using hand_over::StateStream;

session::Options OptionsOf(bool awaits_state, bool channels = false) {
  session::Options options;
  options.memory_way = session::MemoryWay::kDescriptor;
  options.gateways.channels = channels;
  options.awaits_state = awaits_state;
  return options;
}

}  // namespace

std::vector<uint8_t> ExampleOfSessions() {
  SessionHost host(1, OptionsOf(false));
  TestClient client(host);
  if (!client.Hello()) std::abort();
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  StateStream out(bytes, ControlLoop::Now(), versions);
  host.server->HandOverNumbers(out);
  host.server->HandOverSessions(out);
  return bytes;
}

std::string RunSessions(std::span<const uint8_t> state) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    std::abort();
  const UniqueFd client(ends[0]);
  InheritedFds fds;
  fds.Add(FdKind::kClientSocket, "1", UniqueFd(ends[1]));
  SessionHost host(1, OptionsOf(true));
  session::AttachServer& attach = host.server->attach();
  attach.SetWatching(false);
  attach.Inherit(&fds);
  StateStream in(state, ControlLoop::Now());
  host.server->HandOverNumbers(in);
  if (in.ok()) host.server->HandOverSessions(in);
  attach.Inherit(nullptr);
  if (!in.ok()) return in.failure();
  if (!in.at_end()) return "state is longer than what was read";
  attach.SetWatching(true);
  host.Settle();
  return "";
}

std::vector<uint8_t> ExampleOfFoundation() {
  SessionHost host(1, OptionsOf(false, true));
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  StateStream out(bytes, ControlLoop::Now(), versions);
  host.server->HandOverFoundation(out);
  return bytes;
}

std::string RunFoundation(std::span<const uint8_t> state) {
  SessionHost host(1, OptionsOf(true, true));
  StateStream in(state, ControlLoop::Now());
  host.server->HandOverFoundation(in);
  if (!in.ok()) return in.failure();
  if (!in.at_end()) return "state is longer than what was read";
  host.Settle();
  TestClient client(host);
  return client.Hello() ? "" : "the session server does not work";
}

}  // namespace rocegw::testing
