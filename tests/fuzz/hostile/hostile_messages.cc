// SPDX-License-Identifier: Apache-2.0
// Spoiled requests of a program that has no queue pairs which could use what it makes, with
// descriptors of all kinds, one by one and by the thousand. Whatever it asks for, the gateway holds
// a bounded number of events for it, and its pool is charged for the memory.
#include <fcntl.h>
#include <malloc.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "gateway/session/commands/commands.h"
#include "tests/fuzz/hostile/hostile_world.h"

namespace rocegw::testing {
namespace {

constexpr size_t kStorm = 2048;
constexpr uint32_t kTcpPortSpace = 0x0106;  // RDMA_PS_TCP
// Events that one request may cause beyond the limit.
constexpr size_t kEventsOfARequest = 64;
// Memory beside what pools are charged for: answers, log lines, what this test itself remembers.
constexpr uint64_t kHeapBeside = uint64_t{64} << 20;
// Rounds in which the gateway ends what is in a closed ring.
constexpr int kMostSettlings = 64;

struct Kind {
  uint32_t type;
  size_t length;
};
constexpr Kind kRequests[] = {
    {ROCEGW_MSG_HELLO, sizeof(rocegw_hello)},
    {ROCEGW_MSG_QUERY_DEVICE, sizeof(rocegw_query_device)},
    {ROCEGW_MSG_QUERY_GIDS, sizeof(rocegw_query_gids)},
    {ROCEGW_MSG_OPEN_CONTEXT, sizeof(rocegw_open_context)},
    {ROCEGW_MSG_CLOSE_CONTEXT, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_ALLOC_PD, sizeof(rocegw_alloc_pd)},
    {ROCEGW_MSG_DEALLOC_PD, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_REG_MR, sizeof(rocegw_reg_mr)},
    {ROCEGW_MSG_REREG_MR, sizeof(rocegw_rereg_mr)},
    {ROCEGW_MSG_DEREG_MR, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_ALLOC_MW, sizeof(rocegw_alloc_mw)},
    {ROCEGW_MSG_DEALLOC_MW, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_TAKE_AHS, sizeof(rocegw_ahs)},
    {ROCEGW_MSG_GIVE_AHS, sizeof(rocegw_ahs)},
    {ROCEGW_MSG_CREATE_CHANNEL, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_DESTROY_CHANNEL, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_CREATE_CQ, sizeof(rocegw_create_cq)},
    {ROCEGW_MSG_DESTROY_CQ, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_RESIZE_CQ, sizeof(rocegw_resize_cq)},
    {ROCEGW_MSG_MODERATE_CQ, sizeof(rocegw_moderate_cq)},
    {ROCEGW_MSG_CREATE_QP, sizeof(rocegw_create_qp)},
    {ROCEGW_MSG_MODIFY_QP, sizeof(rocegw_modify_qp)},
    {ROCEGW_MSG_QUERY_QP, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_DESTROY_QP, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_MODIFY_EP, sizeof(rocegw_modify_ep)},
    {ROCEGW_MSG_QUERY_EP, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_CREATE_REGION, sizeof(rocegw_create_region)},
    {ROCEGW_MSG_IMPORT_REGION, sizeof(rocegw_import_region)},
    {ROCEGW_MSG_IMPORT_DEVICE, sizeof(rocegw_import_device)},
    {ROCEGW_MSG_DESTROY_REGION, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_SET_MEMORY, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_QUERY_ECE, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_SET_ECE, sizeof(rocegw_set_ece)},
    {ROCEGW_MSG_OPEN_XRCD, sizeof(rocegw_open_xrcd)},
    {ROCEGW_MSG_CLOSE_XRCD, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_OPEN_QP, sizeof(rocegw_open_qp)},
    {ROCEGW_MSG_ATTACH_MULTICAST, sizeof(rocegw_multicast)},
    {ROCEGW_MSG_DETACH_MULTICAST, sizeof(rocegw_multicast)},
    {ROCEGW_MSG_CREATE_PEER, sizeof(rocegw_create_peer)},
    {ROCEGW_MSG_DESTROY_PEER, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_CREATE_SRQ, sizeof(rocegw_create_srq)},
    {ROCEGW_MSG_MODIFY_SRQ, sizeof(rocegw_modify_srq)},
    {ROCEGW_MSG_QUERY_SRQ, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_DESTROY_SRQ, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_CREATE_GROUP, sizeof(rocegw_create_group)},
    {ROCEGW_MSG_DESTROY_GROUP, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_CM_CREATE_CHANNEL, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_CM_DESTROY_CHANNEL, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_CM_CREATE_ID, sizeof(rocegw_cm_create_id)},
    {ROCEGW_MSG_CM_DESTROY_ID, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_CM_BIND, sizeof(rocegw_cm_bind)},
    {ROCEGW_MSG_CM_RESOLVE_ADDR, sizeof(rocegw_cm_resolve_addr)},
    {ROCEGW_MSG_CM_RESOLVE_ROUTE, sizeof(rocegw_cm_resolve_route)},
    {ROCEGW_MSG_CM_LISTEN, sizeof(rocegw_cm_listen)},
    {ROCEGW_MSG_CM_CONNECT, sizeof(rocegw_cm_connect)},
    {ROCEGW_MSG_CM_ACCEPT, sizeof(rocegw_cm_connect)},
    {ROCEGW_MSG_CM_REJECT, sizeof(rocegw_cm_reject)},
    {ROCEGW_MSG_CM_ESTABLISH, sizeof(rocegw_cm_step)},
    {ROCEGW_MSG_CM_DISCONNECT, sizeof(rocegw_cm_step)},
    {ROCEGW_MSG_CM_INIT_QP_ATTR, sizeof(rocegw_cm_init_qp_attr)},
    {ROCEGW_MSG_CM_SET_OPTION, sizeof(rocegw_cm_set_option)},
    {ROCEGW_MSG_CM_MIGRATE, sizeof(rocegw_cm_migrate)},
    {ROCEGW_MSG_CM_NOTIFY, sizeof(rocegw_cm_notify)},
    {ROCEGW_MSG_CM_JOIN, sizeof(rocegw_cm_join)},
    {ROCEGW_MSG_CM_QUERY_ID, sizeof(rocegw_object_request)},
    {ROCEGW_MSG_USE_RINGS, sizeof(rocegw_request)},
};
static_assert(std::size(kRequests) == session::kCommandTypes.size(),
              "a request is not in the list");

constexpr Kind kMakesEvents{ROCEGW_MSG_CM_RESOLVE_ROUTE, sizeof(rocegw_cm_resolve_route)};

// Returns a descriptor that a program might pass.
UniqueFd SomeDescriptor(Random& random) {
  std::array<int, 2> ends{-1, -1};
  switch (random.Below(6)) {
    case 0:
      return UniqueFd(::eventfd(0, EFD_CLOEXEC));
    case 1:
      return UniqueFd(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    case 2:
      return UniqueFd(::open("/proc/self/mem", O_RDWR | O_CLOEXEC));
    case 3:
      return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    case 4:
      (void)::pipe2(ends.data(), O_CLOEXEC);
      break;
    default:
      (void)::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data());
      break;
  }
  const UniqueFd other(ends[1]);
  return UniqueFd(ends[0]);
}

}  // namespace

uint64_t HeapInUse() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Greets, and makes one object of most kinds, so that random handles name some.
void HostileWorld::BeginMessenger() {
  TestClient& client = *messenger_;
  if (!client.Hello()) return;
  const uint32_t context = client.OpenContext();
  client.AllocPd(context);
  client.CreateCq(context, kDepth);
  const auto channel = client.Call<rocegw_object_reply>(
      TestClient::Request<rocegw_object_request>(ROCEGW_MSG_CM_CREATE_CHANNEL));
  unread_ = std::move(client.received_fd);
  auto id = TestClient::Request<rocegw_cm_create_id>(ROCEGW_MSG_CM_CREATE_ID);
  id.channel = channel.handle;
  id.port_space = kTcpPortSpace;
  for (int i = 0; i < 3; ++i) client.Call<rocegw_object_reply>(id);
  Require(client.error() == 0, "a program that asks for little is refused");
}

std::vector<uint8_t> HostileWorld::SpoiledRequest(uint32_t type, size_t of_type, bool numbered) {
  const size_t length = random_.Below(32) == 0 ? random_.Between(1, 256) : of_type;
  std::vector<uint8_t> bytes(length);
  // Small numbers name objects, and are most values.
  for (size_t at = 0; at + 4 <= length; at += 4) {
    const uint32_t word =
        random_.Below(4) == 0 ? random_.Value<uint32_t>() : static_cast<uint32_t>(random_.Below(4));
    std::memcpy(&bytes[at], &word, sizeof word);
  }
  // A request without a number fails by an event, if it has one.
  const uint64_t number = !numbered || random_.Below(4) == 0 ? 0 : figures_.messages;
  rocegw_request header{type, static_cast<uint32_t>(length), number};
  if (random_.Below(64) == 0) header.type = random_.Value<uint32_t>();
  if (random_.Below(64) == 0) header.length ^= 8;
  std::memcpy(bytes.data(), &header, std::min(sizeof header, length));
  return bytes;
}

// Takes the answers of the socket, and uses rings that come with one of them.
void HostileWorld::ReadAnswers() {
  while (const auto message = messenger_->Receive()) {
    if (message->header().type != ROCEGW_MSG_USE_RINGS || !message->fd.valid()) continue;
    auto rings = std::make_unique<MappedRings>(message->fd.get());
    if (!rings->valid()) continue;
    messenger_rings_ = std::move(rings);
    ++figures_.rings;
  }
}

// Asks for rings, and writes requests and any other word there. The gateway may look at them or
// not, or be woken. The answer to the request for rings is not awaited: the gateway reads requests
// of this program only when its other requests have ended and its events were read, and answers in
// rings which the program has forgotten.
void HostileWorld::SpoilRings() {
  if (messenger_rings_ == nullptr || random_.Below(64) == 0) {
    struct Plain {
      rocegw_request header;
    };
    messenger_->Send(TestClient::Request<Plain>(ROCEGW_MSG_USE_RINGS));
    left_.Settle();
    ReadAnswers();
  }
  if (messenger_rings_ == nullptr) return;
  MappedRings& rings = *messenger_rings_;
  for (size_t n = random_.Between(1, 80); n != 0; --n) {
    const Kind& request = kRequests[random_.Below(std::size(kRequests))];
    std::vector<uint8_t> bytes = SpoiledRequest(request.type, request.length, true);
    if (bytes.size() > ROCEGW_RING_MESSAGE_MAX && random_.Below(16) != 0) continue;
    rings.Put(bytes);
    ++figures_.ring_messages;
    if (random_.Below(8) == 0) left_.Turn();
    if (random_.Below(64) == 0) left_.Settle();
  }
  // Answers are taken, or said to be.
  if (random_.Coin()) rings->answers_taken = rings->answers;
  rings->waits[random_.Below(ROCEGW_RING_SLOTS)] = static_cast<uint32_t>(random_.Below(3));
  rings->socket_answers_taken = rings->socket_answers - (random_.Below(8) == 0 ? 1 : 0);
  if (random_.Below(32) == 0) {
    std::array<uint32_t*, 9> words = {&rings->requests,
                                      &rings->answers_taken,
                                      &rings->waits[random_.Below(ROCEGW_RING_SLOTS)],
                                      &rings->requests_taken,
                                      &rings->daemon_awake,
                                      &rings->answers,
                                      &rings->socket_answers,
                                      &rings->socket_requests_taken,
                                      &rings->request[random_.Below(ROCEGW_RING_SLOTS)].length};
    *words[random_.Below(words.size())] = random_.Value<uint32_t>();
  }
  // The eventfd is the program's as well: it may be full, so that a writer blocks.
  const uint64_t value = random_.Below(16) == 0 ? UINT64_MAX - 1 : 1;
  if (random_.Coin()) (void)!::write(messenger_->rings_wake.get(), &value, sizeof value);
}

void HostileWorld::SendMessages() {
  if (messenger_ == nullptr || messenger_->closed()) {
    if (messenger_ != nullptr) ++figures_.connections_refused;
    messenger_rings_.reset();
    messenger_ = left_.Join(session::kDefaultPool);
    if (random_.Below(8) != 0) BeginMessenger();
  }
  for (size_t n = random_.Between(1, 8); n != 0; --n) {
    // A storm is not read while it lasts; half of them make events.
    const bool storm = random_.Below(128) == 0;
    const Kind& request =
        storm && random_.Coin() ? kMakesEvents : kRequests[random_.Below(std::size(kRequests))];
    const std::vector<uint8_t> bytes = SpoiledRequest(request.type, request.length, !storm);
    std::vector<UniqueFd> passed(random_.Below(8) == 0 ? random_.Between(1, 3) : 0);
    std::vector<int> numbers;
    for (UniqueFd& one : passed) {
      one = SomeDescriptor(random_);
      numbers.push_back(one.get());
    }
    for (size_t i = 0; i < (storm ? kStorm : 1); ++i) {
      if (!messenger_->SendRaw(bytes, numbers)) break;
      ++figures_.messages;
      left_.Settle();
    }
    if (random_.Below(4) == 0) SpoilRings();
    // A take-over that fails.
    if (random_.Below(16) == 0) {
      left_.server->attach().SetReading(false);
      // The gateway reads some requests in a round, and none while answers wait to be read.
      std::string unsettled;
      for (int i = 0; i < kMostSettlings; ++i) {
        left_.Settle();
        ReadAnswers();
        unsettled = left_.server->attach().Unsettled();
        if (unsettled.find("ring") == std::string::npos) break;
      }
      Require(unsettled.find("ring") == std::string::npos, "take-over: " + unsettled);
      left_.server->attach().SetReading(true);
      if (random_.Coin()) messenger_rings_.reset();
    }
    JudgeBounds();
    ReadAnswers();
  }
}

void HostileWorld::JudgeBounds() {
  left_.server->attach().ForEach([this](session::ClientSession& session) {
    const size_t waiting = session.event_limits().backlog().waiting;
    figures_.most_events = std::max<uint64_t>(figures_.most_events, waiting);
    Require(waiting <= session.event_limits().MostAhead() + kEventsOfARequest,
            std::to_string(waiting) + " events wait to be read");
  });
  const uint64_t charged =
      left_.server->services().pools.gateway().used(session::Resource::kHeapBytes);
  const uint64_t used = HeapInUse();
  Require(used <= heap_at_first_ + charged + kHeapBeside,
          std::to_string(used - heap_at_first_) + " bytes of heap more than at first, of which " +
              std::to_string(charged) + " are charged");
}

}  // namespace rocegw::testing
