// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/rdma_check/device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>

#include <array>
#include <cstring>

#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

using Clock = std::chrono::steady_clock;

std::string Text(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET6, gid.raw, text.data(), text.size());
}

int FindGid(ibv_context* context, const ibv_gid& gid) {
  ibv_port_attr port{};
  if (ibv_query_port(context, 1, &port) != 0) return -1;
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context, 1, static_cast<uint32_t>(i), &entry, 0) != 0) continue;
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 && std::memcmp(&entry.gid, &gid, sizeof gid) == 0) {
      return i;
    }
  }
  return -1;
}

}  // namespace

ibv_gid GidOf(const sockaddr_storage& address) {
  ibv_gid gid{};
  if (address.ss_family == AF_INET6) {
    std::memcpy(gid.raw, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, 16);
    return gid;
  }
  Check(address.ss_family == AF_INET, "not an IP address");
  gid.raw[10] = gid.raw[11] = 0xFF;
  std::memcpy(gid.raw + 12, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
  return gid;
}

uint8_t GidIndex(ibv_context* context, const ibv_gid& gid) {
  const int index = FindGid(context, gid);
  Check(index >= 0, "no RoCEv2 GID ", Text(gid), " on ", ibv_get_device_name(context->device));
  return static_cast<uint8_t>(index);
}

Owned<ibv_context> OpenDeviceOf(const sockaddr_storage& address) {
  const ibv_gid gid = GidOf(address);
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  CheckErrno(list != nullptr, "ibv_get_device_list");
  Owned<ibv_context> found;
  for (int i = 0; i < count && !found; ++i) {
    Owned<ibv_context> context(ibv_open_device(list[i]));
    if (context && FindGid(context.get(), gid) >= 0) found = std::move(context);
  }
  ibv_free_device_list(list);
  Check(found != nullptr, "none of ", count, " verbs devices has the RoCEv2 GID ", Text(gid));
  return found;
}

Completions::Completions(ibv_context* context, int depth, bool use_events)
    : use_events_(use_events) {
  if (use_events_) {
    channel_.reset(ibv_create_comp_channel(context));
    CheckErrno(channel_ != nullptr, "ibv_create_comp_channel");
    fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  }
  cq_.reset(ibv_create_cq(context, depth, this, channel_.get(), 0));
  CheckErrno(cq_ != nullptr, "ibv_create_cq of ", depth);
}

Completions::~Completions() = default;

std::vector<ibv_wc> Completions::Poll(int most) {
  std::vector<ibv_wc> done(static_cast<size_t>(most));
  const int count = ibv_poll_cq(cq_.get(), most, done.data());
  Check(count >= 0, "ibv_poll_cq returned ", count);
  done.resize(static_cast<size_t>(count));
  return done;
}

void Completions::Arm(bool solicited_only) {
  CheckCode(ibv_req_notify_cq(cq_.get(), solicited_only ? 1 : 0), "ibv_req_notify_cq");
}

bool Completions::EventWithin(std::chrono::milliseconds time) {
  pollfd wait{.fd = channel_->fd, .events = POLLIN, .revents = 0};
  if (poll(&wait, 1, static_cast<int>(time.count())) <= 0) return false;
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  CheckErrno(ibv_get_cq_event(channel_.get(), &cq, &context) == 0, "ibv_get_cq_event");
  Check(cq == cq_.get() && context == this, "completion event for another CQ or context");
  ibv_ack_cq_events(cq, 1);
  return true;
}

std::vector<ibv_wc> Completions::Wait(int most, const char* what) {
  const auto deadline = Clock::now() + kCompletionTimeout;
  std::vector<ibv_wc> done = Poll(most);
  while (done.empty()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    Check(left.count() > 0, "no completion within ", kCompletionTimeout.count(), " s: ", what);
    if (use_events_) {
      Arm(false);
      // What came before arming raises no event, so look again before sleeping.
      done = Poll(most);
      if (done.empty() && EventWithin(left)) done = Poll(most);
    } else {
      sched_yield();
      done = Poll(most);
    }
  }
  return done;
}

void Completions::ExpectNone(std::chrono::milliseconds time, const char* why) {
  const auto deadline = Clock::now() + time;
  while (Clock::now() < deadline) {
    const std::vector<ibv_wc> done = Poll(1);
    Check(done.empty(), "completion (", done.empty() ? "" : ibv_wc_status_str(done[0].status),
          ") although ", why);
    sched_yield();
  }
}

}  // namespace rocegw::interop
