// SPDX-License-Identifier: Apache-2.0
#include "agent/probe_program/connection.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
#include <sched.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "agent/probe_program/failure.h"
#include "agent/probe_program/watchdog.h"
#include "gateway/cm/describe.h"

namespace rocegw::probe {
namespace {

constexpr uint32_t kSends = 64;
constexpr uint64_t kNumberOffset = kPatternBytes;
// As many as may be in flight, so that none is overwritten.
constexpr uint64_t kSlotsOffset = kNumberOffset + kSends * sizeof(uint64_t);
constexpr uint64_t kMemoryBytes = kSlotsOffset + uint64_t{Connection::kReceives} * kLongestMessage;
// Id of send requests; a receive has its slot.
constexpr uint64_t kSendId = UINT64_MAX;
// Devices of the machine itself are not tested.
constexpr char kDevicePrefix[] = "rocegw";
constexpr uint8_t kRetries = 7;

// Marker in the private data of a request, big endian.
constexpr uint32_t kMagic = 0x52475742;
struct Greeting {
  uint32_t magic;
  uint32_t message_bytes;
  uint32_t round_trips;
  uint32_t plain;  // an older probe sends 0
  uint64_t bulk_bytes;
};
// In the private data of the answer. An older probe sends none.
struct Acceptance {
  uint32_t magic;
  uint32_t plain;
};

Greeting GreetingOf(const Wishes& wishes) {
  return {htobe32(kMagic), htobe32(wishes.message_bytes), htobe32(wishes.round_trips),
          htobe32(wishes.plain ? 1 : 0), htobe64(wishes.bulk_bytes)};
}

// Returns false if the sender is not a probe.
bool Read(const std::vector<uint8_t>& data, Wishes& wishes) {
  Greeting greeting;
  if (data.size() < sizeof greeting) return false;
  std::memcpy(&greeting, data.data(), sizeof greeting);
  wishes = {be32toh(greeting.message_bytes), be32toh(greeting.round_trips),
            be64toh(greeting.bulk_bytes), be32toh(greeting.plain) == 1};
  return be32toh(greeting.magic) == kMagic && wishes.message_bytes != 0 &&
         wishes.message_bytes <= kLongestMessage;
}

// Returns true if the other end measures the network beside RDMA when it is asked to.
bool MeasuresPlain(const std::vector<uint8_t>& data) {
  Acceptance acceptance;
  if (data.size() < sizeof acceptance) return false;
  std::memcpy(&acceptance, data.data(), sizeof acceptance);
  return be32toh(acceptance.magic) == kMagic && be32toh(acceptance.plain) == 1;
}

// Returns addresses of active ports; IPv4 first. Link-local addresses work on one link only.
std::vector<std::string> Addresses() {
  std::vector<std::string> v4;
  std::vector<std::string> v6;
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  bool any = false;
  for (int i = 0; devices != nullptr && i < count; ++i) {
    if (!std::string(ibv_get_device_name(devices[i])).starts_with(kDevicePrefix)) continue;
    any = true;
    ibv_context* const context = ibv_open_device(devices[i]);
    if (context == nullptr) FailCall(Fault::kAttachRefused, "the gateway's device is not opened");
    ibv_port_attr port{};
    const bool up = ibv_query_port(context, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE;
    for (int index = 0; up && index < port.gid_tbl_len; ++index) {
      ibv_gid gid{};
      if (ibv_query_gid(context, 1, index, &gid) != 0) continue;
      const auto* const address = reinterpret_cast<const in6_addr*>(gid.raw);
      char text[INET6_ADDRSTRLEN];
      if (IN6_IS_ADDR_V4MAPPED(address)) {
        v4.emplace_back(inet_ntop(AF_INET, gid.raw + 12, text, sizeof text));
      } else if (!IN6_IS_ADDR_UNSPECIFIED(address) && !IN6_IS_ADDR_LINKLOCAL(address)) {
        v6.emplace_back(inet_ntop(AF_INET6, gid.raw, text, sizeof text));
      }
    }
    ibv_close_device(context);
  }
  if (devices != nullptr) ibv_free_device_list(devices);
  if (!any) Fail(Fault::kAttachRefused, "programs see no device of the gateway");
  v4.insert(v4.end(), v6.begin(), v6.end());
  return v4;
}

struct SocketAddress {
  sockaddr_storage bytes{};
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&bytes); }
};

SocketAddress Parse(const std::string& text, uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(text.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    Fail(Fault::kUnreachable, "'" + text + "' is no address");
  SocketAddress address;
  std::memcpy(&address.bytes, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return address;
}

Fault FaultOf(const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return Fault::kUnreachable;
    case RDMA_CM_EVENT_REJECTED:
      return Fault::kConnectionRefused;
    case RDMA_CM_EVENT_UNREACHABLE:
      return Fault::kTimedOut;
    case RDMA_CM_EVENT_DISCONNECTED:
      return Fault::kConnectionLost;
    default:
      return Fault::kFailed;
  }
}

std::string Told(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_REJECTED) {
    return std::string("the other end refused the connection: ") +
           cm::RejectReasonText(static_cast<uint16_t>(event.status));
  }
  const std::string name = rdma_event_str(event.event);
  return event.status == 0 ? name : name + ": " + std::strerror(std::abs(event.status));
}

}  // namespace

Connection::Connection() : memory_(std::make_unique<uint8_t[]>(kMemoryBytes)) {
  SetStage("attaching to the gateway");
  FillPattern(memory_.get());
  (void)Addresses();
  events_ = rdma_create_event_channel();
  if (events_ == nullptr) FailCall(Fault::kFailed, "rdma_create_event_channel");
}

Connection::~Connection() {
  if (id_ != nullptr && id_->qp != nullptr) {
    rdma_disconnect(id_);
    rdma_destroy_qp(id_);
  }
  if (mr_ != nullptr) ibv_dereg_mr(mr_);
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
  if (id_ != nullptr) rdma_destroy_id(id_);
  if (listener_ != nullptr) rdma_destroy_id(listener_);
  if (events_ != nullptr) rdma_destroy_event_channel(events_);
}

Connection::Event Connection::Await(rdma_cm_event_type wanted) {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(events_, &event) != 0) FailCall(Fault::kFailed, "rdma_get_cm_event");
  Event taken{event->id, {}};
  if (event->event != wanted) {
    const Failed told{FaultOf(*event), Told(*event)};
    rdma_ack_cm_event(event);
    throw Failure{told};
  }
  const auto* const data = static_cast<const uint8_t*>(event->param.conn.private_data);
  const bool has_data =
      wanted == RDMA_CM_EVENT_CONNECT_REQUEST || wanted == RDMA_CM_EVENT_ESTABLISHED;
  if (has_data && data != nullptr)
    taken.private_data.assign(data, data + event->param.conn.private_data_len);
  rdma_ack_cm_event(event);
  return taken;
}

void Connection::MakeQueuePair() {
  cq_ = ibv_create_cq(id_->verbs, kSends + kReceives, nullptr, nullptr, 0);
  if (cq_ == nullptr) FailCall(Fault::kFailed, "ibv_create_cq");
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = cq_;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {.max_send_wr = kSends,
                    .max_recv_wr = kReceives,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = 0};
  if (rdma_create_qp(id_, nullptr, &attributes) != 0) FailCall(Fault::kFailed, "rdma_create_qp");
  mr_ = ibv_reg_mr(id_->pd, memory_.get(), kMemoryBytes, IBV_ACCESS_LOCAL_WRITE);
  if (mr_ == nullptr) FailCall(Fault::kFailed, "ibv_reg_mr");
  for (uint32_t slot = 0; slot < kReceives; ++slot) PostReceive(slot);
}

void Connection::Listen() {
  const std::vector<std::string> addresses = Addresses();
  if (addresses.empty())
    Fail(Fault::kNoAddress, "the gateway has no port that is up and has an address");
  for (const std::string& text : addresses) {
    if (rdma_create_id(events_, &listener_, nullptr, RDMA_PS_TCP) != 0)
      FailCall(Fault::kFailed, "rdma_create_id");
    SocketAddress address = Parse(text, 0);
    // An address may belong to another pool.
    if (rdma_bind_addr(listener_, address.any()) == 0) {
      address_ = text;
      if (rdma_listen(listener_, 4) != 0) FailCall(Fault::kFailed, "rdma_listen");
      Tell(TextOf(Listening{text, ntohs(rdma_get_src_port(listener_))}));
      return;
    }
    if (text == addresses.back()) FailCall(Fault::kNoAddress, "rdma_bind_addr to " + text);
    rdma_destroy_id(listener_);
    listener_ = nullptr;
  }
}

Wishes Connection::Accept() {
  Listen();
  SetStage("waiting for the other end to connect");
  Wishes wishes;
  for (;;) {
    const Event request = Await(RDMA_CM_EVENT_CONNECT_REQUEST);
    id_ = request.id;
    if (Read(request.private_data, wishes)) break;
    rdma_reject(id_, nullptr, 0);
    rdma_destroy_id(std::exchange(id_, nullptr));
  }
  MakeQueuePair();
  const Acceptance acceptance{htobe32(kMagic), htobe32(1)};
  rdma_conn_param parameters{};
  parameters.private_data = &acceptance;
  parameters.private_data_len = sizeof acceptance;
  parameters.rnr_retry_count = kRetries;
  if (rdma_accept(id_, &parameters) != 0) FailCall(Fault::kFailed, "rdma_accept");
  Await(RDMA_CM_EVENT_ESTABLISHED);
  return wishes;
}

void Connection::Connect(const std::string& address, uint16_t port, const Wishes& wishes) {
  constexpr int kResolveMs = 3000;
  SocketAddress to = Parse(address, port);
  if (rdma_create_id(events_, &id_, nullptr, RDMA_PS_TCP) != 0)
    FailCall(Fault::kFailed, "rdma_create_id");
  SetStage("looking for the way to " + address);
  if (rdma_resolve_addr(id_, nullptr, to.any(), kResolveMs) != 0)
    FailCall(Fault::kUnreachable, "rdma_resolve_addr of " + address);
  Await(RDMA_CM_EVENT_ADDR_RESOLVED);
  if (!std::string(ibv_get_device_name(id_->verbs->device)).starts_with(kDevicePrefix)) {
    Fail(Fault::kUnreachable, "the way to " + address + " is by " +
                                  ibv_get_device_name(id_->verbs->device) +
                                  ", which is not the gateway's");
  }
  if (rdma_resolve_route(id_, kResolveMs) != 0)
    FailCall(Fault::kUnreachable, "rdma_resolve_route to " + address);
  Await(RDMA_CM_EVENT_ROUTE_RESOLVED);
  MakeQueuePair();
  SetStage("connecting to " + address + " (UDP port 4791)");
  const Greeting greeting = GreetingOf(wishes);
  rdma_conn_param parameters{};
  parameters.private_data = &greeting;
  parameters.private_data_len = sizeof greeting;
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = kRetries;
  if (rdma_connect(id_, &parameters) != 0)
    FailCall(Fault::kUnreachable, "rdma_connect to " + address);
  other_measures_plain_ = MeasuresPlain(Await(RDMA_CM_EVENT_ESTABLISHED).private_data);
}

void Connection::PostReceive(uint32_t slot) {
  const uint64_t address =
      reinterpret_cast<uint64_t>(memory_.get()) + kSlotsOffset + uint64_t{slot} * kLongestMessage;
  ibv_sge part{.addr = address, .length = kLongestMessage, .lkey = mr_->lkey};
  ibv_recv_wr request{};
  request.wr_id = slot;
  request.sg_list = &part;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (ibv_post_recv(id_->qp, &request, &bad) != 0) FailCall(Fault::kFailed, "ibv_post_recv");
}

void Connection::PostSend(uint64_t offset, uint32_t length) {
  while (sends_ == kSends) {
    const ibv_wc done = Poll();
    if (done.wr_id != kSendId) received_.push_back(MessageOf(done));
  }
  ibv_sge part{.addr = reinterpret_cast<uint64_t>(memory_.get()) + offset,
               .length = length,
               .lkey = mr_->lkey};
  ibv_send_wr request{};
  request.wr_id = kSendId;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &part;
  request.num_sge = 1;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(id_->qp, &request, &bad) != 0) FailCall(Fault::kFailed, "ibv_post_send");
  ++sends_;
}

Connection::Message Connection::MessageOf(const ibv_wc& done) const {
  const auto slot = static_cast<uint32_t>(done.wr_id);
  return {memory_.get() + kSlotsOffset + uint64_t{slot} * kLongestMessage, done.byte_len, slot};
}

void Connection::SendPattern(uint32_t offset, uint32_t length) { PostSend(offset, length); }

void Connection::SendNumber(uint64_t number) {
  const uint64_t at = kNumberOffset + numbers_++ % kSends * sizeof number;
  const uint64_t wire = htobe64(number);
  std::memcpy(memory_.get() + at, &wire, sizeof wire);
  PostSend(at, sizeof wire);
}

ibv_wc Connection::Poll() {
  constexpr uint32_t kPollsInARow = 64;
  ibv_wc done{};
  for (uint32_t empty = 1;; ++empty) {
    const int count = ibv_poll_cq(cq_, 1, &done);
    if (count < 0) FailCall(Fault::kFailed, "ibv_poll_cq");
    if (count > 0) break;
    // The gateway may need this CPU.
    if (empty % kPollsInARow == 0) sched_yield();
  }
  if (done.status != IBV_WC_SUCCESS) Fail(Fault::kConnectionLost, ibv_wc_status_str(done.status));
  if (done.wr_id == kSendId) --sends_;
  return done;
}

Connection::Message Connection::Receive() {
  if (!received_.empty()) {
    const Message message = received_.front();
    received_.erase(received_.begin());
    return message;
  }
  for (;;) {
    const ibv_wc done = Poll();
    if (done.wr_id != kSendId) return MessageOf(done);
  }
}

}  // namespace rocegw::probe
