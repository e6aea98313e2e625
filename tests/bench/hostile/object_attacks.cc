// SPDX-License-Identifier: Apache-2.0
// Attacks with well-formed requests: more objects, events and memory than the daemon has.
#include <sys/resource.h>
#include <unistd.h>

#include <memory>

#include "tests/bench/hostile/attach.h"

namespace rocegw::bench {
namespace {

// One rdma_cm id whose channel is never read.
struct UnreadId {
  explicit UnreadId(const char* path) : attach(path) {
    if (!attach.Hello()) return;
    const uint32_t channel = attach.Channel(ROCEGW_MSG_CM_CREATE_CHANNEL, 0);
    id = attach.CmId(channel, 1);
  }
  Attach attach;
  uint32_t id = 0;
};

// Asks for routes on an idle id without wanting answers: each request fails as an event.
void RouteStorm(int, char** arguments) {
  for (;;) {
    UnreadId unread(arguments[0]);
    auto request = Attach::Request<rocegw_cm_resolve_route>(ROCEGW_MSG_CM_RESOLVE_ROUTE);
    request.id = unread.id;
    while (unread.id != 0 && unread.attach.Send(request, false)) {
    }
  }
}

void JoinStorm(int, char** arguments) {
  for (;;) {
    UnreadId unread(arguments[0]);
    auto request = Attach::Request<rocegw_cm_join>(ROCEGW_MSG_CM_JOIN);
    request.id = unread.id;
    request.group.family = 2;  // AF_INET
    request.group.address[0] = 239;
    while (unread.id != 0 && unread.attach.Send(request, false)) {
      ++request.join;
      request.group.address[3] = static_cast<uint8_t>(request.join);
    }
  }
}

// Many sessions, each with as many contexts and event channels as the daemon grants.
void DescriptorHoard(int, char** arguments) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<std::unique_ptr<Attach>> held;
  for (;;) {
    auto attach = std::make_unique<Attach>(arguments[0]);
    if (!attach->Hello()) {
      usleep(10000);
      continue;
    }
    const uint32_t context = attach->OpenContext();
    while (attach->Channel(ROCEGW_MSG_CREATE_CHANNEL, context) != 0) {
    }
    while (attach->OpenContext() != 0) {
    }
    held.push_back(std::move(attach));
  }
}

// Queue pairs with the deepest queues and longest lists, until the daemon refuses.
void HeapHoard(int, char** arguments) {
  for (;;) {
    Attach attach(arguments[0]);
    if (!attach.Hello()) continue;
    const uint32_t context = attach.OpenContext();
    const uint32_t pd = attach.Pd(context);
    const uint32_t cq = attach.Cq(context, 64);
    rocegw_qp_reply reply{};
    while (attach.Qp(pd, cq, 16384, 16, reply) == 0) {
    }
    // Each page of the queues exists once it is written.
    for (const auto& [number, chunk] : attach.chunks()) {
      if (!chunk.writable) continue;
      for (uint64_t at = 0; at < chunk.size; at += 4096) chunk.base[at] = 1;
    }
    for (int i = 0; i < 1000 && attach.Qp(pd, cq, 16384, 16, reply) > 0; ++i) usleep(1000);
  }
}

// Ids that are bound to every port of every address, and listen.
void WildcardListeners(int, char** arguments) {
  for (;;) {
    Attach attach(arguments[0]);
    if (!attach.Hello()) continue;
    const uint32_t channel = attach.Channel(ROCEGW_MSG_CM_CREATE_CHANNEL, 0);
    for (uint16_t port = 1; port != 0; ++port) {
      const uint32_t id = attach.CmId(channel, port);
      if (id == 0) break;
      auto bind = Attach::Request<rocegw_cm_bind>(ROCEGW_MSG_CM_BIND);
      bind.id = id;
      bind.address.family = 2;  // AF_INET
      bind.address.port = port;
      rocegw_cm_id_reply reply{};
      if (attach.Call(bind, reply) < 0) break;
      auto listen = Attach::Request<rocegw_cm_listen>(ROCEGW_MSG_CM_LISTEN);
      listen.id = id;
      listen.backlog = 0x7FFFFFFF;
      rocegw_reply done{};
      if (attach.Call(listen, done) < 0) break;
    }
  }
}

// Binds ids to ports that the gateway chooses until it refuses one, and goes on asking for that id.
void EphemeralPorts(int, char** arguments) {
  for (;;) {
    Attach attach(arguments[0]);
    if (!attach.Hello()) continue;
    const uint32_t channel = attach.Channel(ROCEGW_MSG_CM_CREATE_CHANNEL, 0);
    auto bind = Attach::Request<rocegw_cm_bind>(ROCEGW_MSG_CM_BIND);
    bind.address.family = 2;  // AF_INET
    rocegw_cm_id_reply reply{};
    uint64_t bound = 0;
    do {
      bind.id = attach.CmId(channel, ++bound);
    } while (bind.id != 0 && attach.Call(bind, reply) == 0);
    while (attach.Call(bind, reply) > 0) {
    }
  }
}

// Objects of every kind that costs one request, until the daemon refuses each.
void ObjectHoard(int, char** arguments) {
  for (;;) {
    Attach attach(arguments[0]);
    if (!attach.Hello()) continue;
    const uint32_t context = attach.OpenContext();
    while (attach.Pd(context) != 0) {
    }
    while (attach.Cq(context, 4096) != 0) {
    }
    const uint32_t channel = attach.Channel(ROCEGW_MSG_CM_CREATE_CHANNEL, 0);
    while (attach.CmId(channel, 1) != 0) {
    }
  }
}

constexpr Attack kAttacks[] = {
    {"route_storm", RouteStorm},         {"join_storm", JoinStorm},
    {"heap_hoard", HeapHoard},           {"descriptor_hoard", DescriptorHoard},
    {"object_hoard", ObjectHoard},       {"wildcard_listeners", WildcardListeners},
    {"ephemeral_ports", EphemeralPorts},
};

}  // namespace

constinit const std::span<const Attack> kObjectAttacks(kAttacks);

}  // namespace rocegw::bench
