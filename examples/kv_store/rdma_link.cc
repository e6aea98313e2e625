// SPDX-License-Identifier: Apache-2.0
#include "examples/kv_store/rdma_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "examples/kv_store/message.h"

namespace kv {
namespace {

constexpr Milliseconds kStep(250);
constexpr Milliseconds kAcceptLimit(5000);
constexpr size_t kReceives = 2;
constexpr uint64_t kSendId = kReceives;  // ids below are receive buffers

int Left(Clock::time_point end) {
  const auto left = std::chrono::ceil<Milliseconds>(end - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

sockaddr_in ToSocketAddress(const std::string& address, uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  (void)::inet_pton(AF_INET, address.c_str(), &out.sin_addr);
  return out;
}

rdma_conn_param Parameters() {
  rdma_conn_param parameters{};
  parameters.retry_count = 5;
  parameters.rnr_retry_count = 7;  // without end: the reader posts again before it answers
  return parameters;
}

// Event channel that is polled.
class Events {
 public:
  Events() : channel_(rdma_create_event_channel()) {
    if (channel_ != nullptr) (void)::fcntl(channel_->fd, F_SETFL, O_NONBLOCK);
  }
  ~Events() {
    if (channel_ != nullptr) rdma_destroy_event_channel(channel_);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  rdma_event_channel* get() const { return channel_; }

  struct Event {
    rdma_cm_event_type type;
    rdma_cm_id* id;
  };
  // Returns the next event, acknowledged; nullopt: none came until `end`.
  std::optional<Event> Next(Clock::time_point end) const {
    pollfd entry{channel_->fd, POLLIN, 0};
    rdma_cm_event* event = nullptr;
    if (::poll(&entry, 1, Left(end)) != 1 || rdma_get_cm_event(channel_, &event) != 0)
      return std::nullopt;
    const Event copy = {event->event, event->id};
    rdma_ack_cm_event(event);
    return copy;
  }
  // Returns true if the next event is of that type.
  bool Await(rdma_cm_event_type type, Clock::time_point end) const {
    const auto event = Next(end);
    return event.has_value() && event->type == type;
  }

 private:
  rdma_event_channel* const channel_;
};

class RdmaLink final : public Link {
 public:
  RdmaLink() = default;
  ~RdmaLink() override {
    if (connected_) (void)rdma_disconnect(id_);
    if (id_ != nullptr && id_->qp != nullptr) rdma_destroy_qp(id_);
    if (region_ != nullptr) ibv_dereg_mr(region_);
    if (cq_ != nullptr) ibv_destroy_cq(cq_);
    if (completions_ != nullptr) ibv_destroy_comp_channel(completions_);
    if (pd_ != nullptr) ibv_dealloc_pd(pd_);
    if (id_ != nullptr) rdma_destroy_id(id_);
  }
  RdmaLink(const RdmaLink&) = delete;
  RdmaLink& operator=(const RdmaLink&) = delete;

  Transport transport() const override { return Transport::kRdma; }

  bool Connect(const std::string& address, uint16_t port, Milliseconds limit) {
    const auto end = Clock::now() + limit;
    sockaddr_in to = ToSocketAddress(address, port);
    if (events_.get() == nullptr || rdma_create_id(events_.get(), &id_, nullptr, RDMA_PS_TCP) != 0)
      return false;
    if (rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&to), Left(end)) != 0 ||
        !events_.Await(RDMA_CM_EVENT_ADDR_RESOLVED, end) ||
        rdma_resolve_route(id_, Left(end)) != 0 ||
        !events_.Await(RDMA_CM_EVENT_ROUTE_RESOLVED, end) || !MakeQueuePair())
      return false;
    rdma_conn_param parameters = Parameters();
    connected_ =
        rdma_connect(id_, &parameters) == 0 && events_.Await(RDMA_CM_EVENT_ESTABLISHED, end);
    return connected_;
  }

  // Takes the id of a connection request. Returns false if its event channel cannot change.
  bool Take(rdma_cm_id* id) {
    id_ = id;
    return events_.get() != nullptr && rdma_migrate_id(id_, events_.get()) == 0;
  }

  // Accepts at the first receive, on the connection's own thread.
  bool Receive(std::string& bytes, Milliseconds limit) override {
    if (!connected_ && !Accept()) return false;
    const auto end = Clock::now() + limit;
    while (arrived_.empty()) {
      if (!Poll(end)) return false;
    }
    const auto [buffer, length] = arrived_.front();
    arrived_.pop_front();
    bytes.assign(BufferOf(buffer), length);
    return PostReceive(buffer);
  }

  bool Send(const std::string& bytes, Milliseconds limit) override {
    if (!connected_ || bytes.size() > kLongestMessage) return false;
    std::memcpy(BufferOf(kSendId), bytes.data(), bytes.size());
    ibv_sge piece = {reinterpret_cast<uint64_t>(BufferOf(kSendId)),
                     static_cast<uint32_t>(bytes.size()), region_->lkey};
    ibv_send_wr request{};
    request.wr_id = kSendId;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(id_->qp, &request, &bad) != 0) return false;
    const auto end = Clock::now() + limit;
    sent_ = false;
    while (!sent_) {
      if (!Poll(end)) return false;
    }
    return true;
  }

 private:
  char* BufferOf(uint64_t number) { return buffers_.data() + number * kLongestMessage; }

  bool MakeQueuePair() {
    buffers_.resize((kReceives + 1) * kLongestMessage);
    pd_ = ibv_alloc_pd(id_->verbs);
    completions_ = ibv_create_comp_channel(id_->verbs);
    if (pd_ == nullptr || completions_ == nullptr) return false;
    (void)::fcntl(completions_->fd, F_SETFL, O_NONBLOCK);
    cq_ = ibv_create_cq(id_->verbs, kReceives + 1, nullptr, completions_, 0);
    region_ = ibv_reg_mr(pd_, buffers_.data(), buffers_.size(), IBV_ACCESS_LOCAL_WRITE);
    if (cq_ == nullptr || region_ == nullptr) return false;
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = cq_;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {1, kReceives, 1, 1, 0};
    if (rdma_create_qp(id_, pd_, &attributes) != 0) return false;
    for (uint64_t i = 0; i < kReceives; ++i) {
      if (!PostReceive(i)) return false;
    }
    return true;
  }

  bool Accept() {
    if (id_ == nullptr || !MakeQueuePair()) return false;
    rdma_conn_param parameters = Parameters();
    connected_ = rdma_accept(id_, &parameters) == 0 &&
                 events_.Await(RDMA_CM_EVENT_ESTABLISHED, Clock::now() + kAcceptLimit);
    return connected_;
  }

  bool PostReceive(uint64_t number) {
    ibv_sge piece = {reinterpret_cast<uint64_t>(BufferOf(number)),
                     static_cast<uint32_t>(kLongestMessage), region_->lkey};
    ibv_recv_wr request{};
    request.wr_id = number;
    request.sg_list = &piece;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(id_->qp, &request, &bad) == 0;
  }

  // Takes one completion. Returns false if the link is broken, or none came until `end`.
  bool Poll(Clock::time_point end) {
    while (true) {
      ibv_wc completion{};
      int count = ibv_poll_cq(cq_, 1, &completion);
      if (count == 0) {
        // A completion between the first look and the request for a notification makes no event.
        if (ibv_req_notify_cq(cq_, 0) != 0) return false;
        count = ibv_poll_cq(cq_, 1, &completion);
      }
      if (count == 1) return Note(completion);
      if (count < 0 || !Wait(end)) return false;
    }
  }

  bool Note(const ibv_wc& completion) {
    if (completion.status != IBV_WC_SUCCESS) return false;
    if (completion.wr_id == kSendId) {
      sent_ = true;
    } else {
      arrived_.emplace_back(completion.wr_id, completion.byte_len);
    }
    return true;
  }

  // Waits for a notification of the completion queue. An event of the connection is its end.
  bool Wait(Clock::time_point end) {
    std::array<pollfd, 2> entries = {pollfd{completions_->fd, POLLIN, 0},
                                     pollfd{events_.get()->fd, POLLIN, 0}};
    if (::poll(entries.data(), entries.size(), Left(end)) <= 0) return false;
    if (entries[1].revents != 0 && events_.Next(Clock::now()).has_value()) return false;
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (entries[0].revents != 0 && ibv_get_cq_event(completions_, &cq, &context) == 0)
      ibv_ack_cq_events(cq, 1);
    return true;
  }

  Events events_;  // outlives the id
  rdma_cm_id* id_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* completions_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* region_ = nullptr;
  std::vector<char> buffers_;
  std::deque<std::pair<uint64_t, uint32_t>> arrived_;  // receive buffer, bytes
  bool sent_ = false;
  bool connected_ = false;
};

}  // namespace

std::unique_ptr<Link> ConnectRdma(const std::string& address, uint16_t port, Milliseconds limit) {
  auto link = std::make_unique<RdmaLink>();
  if (!link->Connect(address, port, limit)) return nullptr;
  return link;
}

void ServeRdma(const std::string& address, uint16_t port, const std::function<void()>& listening,
               const std::function<bool()>& stop, const OnLink& on_link) {
  const Events events;
  sockaddr_in at = ToSocketAddress(address, port);
  rdma_cm_id* listener = nullptr;
  if (events.get() == nullptr || rdma_create_id(events.get(), &listener, nullptr, RDMA_PS_TCP) != 0)
    return;
  if (rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&at)) == 0 &&
      rdma_listen(listener, 16) == 0) {
    listening();
    while (!stop()) {
      const auto event = events.Next(Clock::now() + kStep);
      if (!event.has_value()) continue;
      if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL && event->id == listener) break;
      if (event->type != RDMA_CM_EVENT_CONNECT_REQUEST) continue;
      auto link = std::make_unique<RdmaLink>();
      if (link->Take(event->id)) on_link(std::move(link));
    }
  }
  rdma_destroy_id(listener);
}

}  // namespace kv
