// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/link/connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace rocegw::far {
namespace {

constexpr int kResolveMilliseconds = 2000;
constexpr int kMostReads = 16;  // in flight at once on a connection

int MillisecondsUntil(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60000));
}

// READs that the device can have in flight on a queue pair, as requester and as responder.
rdma_conn_param ReadsOf(ibv_context* context) {
  rdma_conn_param parameters{};
  ibv_device_attr device{};
  if (ibv_query_device(context, &device) == 0) {
    parameters.initiator_depth =
        static_cast<uint8_t>(std::min(kMostReads, device.max_qp_init_rd_atom));
    parameters.responder_resources =
        static_cast<uint8_t>(std::min(kMostReads, device.max_qp_rd_atom));
  }
  return parameters;
}

Status Failed(const std::string& what, int error) {
  return {error, what + ": " + std::strerror(error)};
}

}  // namespace

Connection::~Connection() {
  DestroyQueuePair();
  if (messages_mr_ != nullptr) ibv_dereg_mr(messages_mr_);
  if (id_ != nullptr) rdma_destroy_id(id_);
  if (channel_ != nullptr) rdma_destroy_event_channel(channel_);
}

Status Connection::Resolve(const std::string& host, const std::string& port,
                           Clock::time_point deadline) {
  channel_ = rdma_create_event_channel();
  if (channel_ == nullptr) return Failed("no RDMA connection manager", errno);
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  if (rdma_create_id(channel_, &id_, nullptr, RDMA_PS_TCP) != 0) {
    return Failed("no RDMA identifier", errno);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return {EHOSTUNREACH, host + ": " + gai_strerror(error)};
  }
  const int failed = rdma_resolve_addr(id_, nullptr, found->ai_addr, kResolveMilliseconds);
  const int error = errno;
  freeaddrinfo(found);
  if (failed != 0) return Failed("no RDMA device reaches " + host, error);
  if (Status status = WaitFor(RDMA_CM_EVENT_ADDR_RESOLVED, deadline); !status.ok()) return status;
  if (rdma_resolve_route(id_, kResolveMilliseconds) != 0) {
    return Failed("no route to " + host, errno);
  }
  return WaitFor(RDMA_CM_EVENT_ROUTE_RESOLVED, deadline);
}

Status Connection::MakeQueuePair(ibv_pd* pd, ibv_cq* cq, Depth depth) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = cq;
  attributes.recv_cq = cq;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap.max_send_wr = depth.sends + kMessages;
  attributes.cap.max_recv_wr = kMessages;
  attributes.cap.max_send_sge = depth.segments;
  attributes.cap.max_recv_sge = 1;
  if (rdma_create_qp(id_, pd, &attributes) != 0) return Failed("no queue pair", errno);
  messages_mr_ = ibv_reg_mr(pd, messages_.data(), sizeof messages_, IBV_ACCESS_LOCAL_WRITE);
  if (messages_mr_ == nullptr) return Failed("no memory region for messages", errno);
  for (uint32_t number = 0; number < buffers_.size(); number++) {
    const bool received = number < kMessages;
    buffers_[number] = {
        received ? Completable::Kind::kReceivedMessage : Completable::Kind::kSentMessage, this};
    if (!received) continue;
    if (const int error = Rearm(buffers_[number]); error != 0) {
      return Failed("no receive for messages", error);
    }
  }
  return OkStatus();
}

StatusOr<Welcome> Connection::Connect(const Hello& hello, Clock::time_point deadline) {
  const HelloBytes said = Encode(hello);
  rdma_conn_param parameters = ReadsOf(id_->verbs);
  parameters.private_data = said.data();
  parameters.private_data_len = said.size();
  parameters.retry_count = 7;
  parameters.rnr_retry_count = 7;
  if (rdma_connect(id_, &parameters) != 0) return Failed("cannot connect", errno);
  const auto event = Expect(RDMA_CM_EVENT_ESTABLISHED, deadline);
  if (!event.ok()) return event.status();
  const auto welcome = DecodeWelcome(event.value()->param.conn.private_data,
                                     event.value()->param.conn.private_data_len);
  rdma_ack_cm_event(event.value());
  if (!welcome) return Status{EPROTO, "what listens there is no memory donor of this version"};
  return *welcome;
}

Status Connection::Accept(const Welcome& welcome) {
  const WelcomeBytes said = Encode(welcome);
  rdma_conn_param parameters = ReadsOf(id_->verbs);
  parameters.private_data = said.data();
  parameters.private_data_len = said.size();
  parameters.retry_count = 7;
  parameters.rnr_retry_count = 7;
  if (rdma_accept(id_, &parameters) != 0) return Failed("cannot accept", errno);
  return OkStatus();
}

StatusOr<rdma_cm_event*> Connection::Expect(rdma_cm_event_type type, Clock::time_point deadline) {
  std::array<pollfd, 2> ready{{{channel_->fd, POLLIN, 0}, {cancel_fd_, POLLIN, 0}}};
  while (poll(ready.data(), ready.size(), MillisecondsUntil(deadline)) <= 0) {
    if (Clock::now() >= deadline) return Status{ETIMEDOUT, "no answer in time"};
  }
  if (ready[1].revents != 0) return Status{ECANCELED, "stopped"};
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel_, &event) != 0) return Failed("no event", errno);
  if (event->event == type) return event;
  Status status{ECONNREFUSED, rdma_event_str(event->event)};
  if (event->event == RDMA_CM_EVENT_REJECTED) {
    const auto refusal =
        DecodeRefusal(event->param.conn.private_data, event->param.conn.private_data_len);
    status = refusal ? Failed("the donor refused", refusal->error)
                     : Status{ECONNREFUSED, "no donor listens there"};
  } else if (event->event == RDMA_CM_EVENT_UNREACHABLE) {
    status = Status{EHOSTUNREACH, "no answer"};
  }
  rdma_ack_cm_event(event);
  return status;
}

Status Connection::WaitFor(rdma_cm_event_type type, Clock::time_point deadline) {
  const auto event = Expect(type, deadline);
  if (!event.ok()) return event.status();
  rdma_ack_cm_event(event.value());
  return OkStatus();
}

bool Connection::TakeEvents() {
  bool ended = false;
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_, &event) == 0) {
    ended |= event->event != RDMA_CM_EVENT_ESTABLISHED;
    rdma_ack_cm_event(event);
  }
  return ended;
}

int Connection::Post(ibv_send_wr* chain, ibv_send_wr** bad) {
  const std::lock_guard lock(post_mutex_);
  *bad = chain;
  if (id_ == nullptr || id_->qp == nullptr) return ENOTCONN;
  return ibv_post_send(id_->qp, chain, bad);
}

int Connection::Send(const Message& message) {
  const std::lock_guard lock(post_mutex_);
  if (id_ == nullptr || id_->qp == nullptr) return ENOTCONN;
  if (free_sends_ == 0) return EAGAIN;
  const auto number = static_cast<uint32_t>(std::countr_zero(free_sends_));
  MessageBytes& bytes = messages_[kMessages + number];
  bytes = Encode(message);
  ibv_sge segment{reinterpret_cast<uintptr_t>(bytes.data()), kMessageBytes, messages_mr_->lkey};
  ibv_send_wr request{};
  request.wr_id = reinterpret_cast<uintptr_t>(&buffers_[kMessages + number]);
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(id_->qp, &request, &bad);
  if (error == 0) free_sends_ &= ~(uint32_t{1} << number);
  return error;
}

void Connection::OnCompletion(const Completable& buffer) {
  const std::lock_guard lock(post_mutex_);
  const auto number = static_cast<uint32_t>(&buffer - buffers_.data());
  if (number < kMessages) {
    armed_ &= ~(uint32_t{1} << number);
  } else {
    free_sends_ |= uint32_t{1} << (number - kMessages);
  }
}

bool Connection::idle() {
  const std::lock_guard lock(post_mutex_);
  return armed_ == 0 && free_sends_ == kAllBuffers;
}

bool Connection::AreMessagesSent() {
  const std::lock_guard lock(post_mutex_);
  return free_sends_ == kAllBuffers;
}

std::optional<Message> Connection::Received(const Completable& buffer, uint32_t bytes) const {
  return DecodeMessage(messages_[static_cast<size_t>(&buffer - buffers_.data())].data(), bytes);
}

int Connection::Rearm(const Completable& buffer) {
  const std::lock_guard lock(post_mutex_);
  if (id_->qp == nullptr) return ENOTCONN;
  const auto number = static_cast<size_t>(&buffer - buffers_.data());
  ibv_sge segment{reinterpret_cast<uintptr_t>(messages_[number].data()), kMessageBytes,
                  messages_mr_->lkey};
  ibv_recv_wr request{};
  request.wr_id = reinterpret_cast<uintptr_t>(&buffer);
  request.sg_list = &segment;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(id_->qp, &request, &bad);
  if (error == 0) armed_ |= uint32_t{1} << number;
  return error;
}

void Connection::Abort() {
  const std::lock_guard lock(post_mutex_);
  if (id_ == nullptr || id_->qp == nullptr) return;
  rdma_disconnect(id_);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(id_->qp, &attributes, IBV_QP_STATE);
}

void Connection::DestroyQueuePair() {
  const std::lock_guard lock(post_mutex_);
  if (id_ != nullptr && id_->qp != nullptr) rdma_destroy_qp(id_);
}

}  // namespace rocegw::far
