// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/shared_pool/donor_path.h"

#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "gateway/base/errno_status.h"
#include "gateway/base/mix.h"
#include "gateway/far/shared_pool/endpoint_calls.h"

namespace rocegw::far {
namespace {

// Completions of an aborted queue pair need the error state.
void BreakQueuePair(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(qp, &attributes, IBV_QP_STATE);
}

class QueuePairPath final : public DonorPath {
 public:
  QueuePairPath(const PoolGrant& grant, std::unique_ptr<Connection> connection)
      : DonorPath(grant), connection_(std::move(connection)) {}
  ~QueuePairPath() override { rdma_disconnect(connection_->id()); }

  int Post(const Command& command, uint64_t id) override {
    ibv_sge segment{};
    ibv_send_wr request = RequestOf(command, id, &segment);
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(connection_->id()->qp, &request, &bad);
  }
  void Abort() override {
    rdma_disconnect(connection_->id());
    BreakQueuePair(connection_->id()->qp);
  }
  bool is_endpoint() const override { return false; }

 private:
  const std::unique_ptr<Connection> connection_;
};

// Endpoint for one donor alone: commands for a donor that hangs take no slots of those for others.
class EndpointPath final : public DonorPath {
 public:
  EndpointPath(const PoolGrant& grant, const PathResources& resources, const EndpointCalls& calls)
      : DonorPath(grant), resources_(resources), calls_(calls) {}
  ~EndpointPath() override {
    if (endpoint_ != nullptr) ibv_destroy_qp(endpoint_);
    if (peer_ != nullptr) calls_.destroy_peer(peer_);
  }

  Status Open(const ibv_sa_path_rec& path, const rdma_addr& address) {
    rocegwdv_ep_init_attr attributes{};
    attributes.send_cq = resources_.cq;
    attributes.recv_cq = resources_.cq;
    attributes.cap.max_send_wr = resources_.depth;
    attributes.cap.max_recv_wr = 1;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_recv_sge = 1;
    attributes.sq_sig_all = 1;
    // No peer sends to this endpoint, and so none learns its key.
    if (getrandom(&attributes.key, sizeof attributes.key, 0) != sizeof attributes.key) {
      return ErrnoStatus("no random numbers");
    }
    attributes.service_mode = ROCEGWDV_SERVICE_UNORDERED;
    attributes.completion_order = ROCEGWDV_COMPLETION_ANY;
    attributes.timeout_ms = resources_.timeout_ms;
    endpoint_ = calls_.create_ep(resources_.pd, &attributes, sizeof attributes);
    if (endpoint_ == nullptr) return ErrnoStatus("no endpoint");
    rocegwdv_peer_attr to{};
    to.gid = address.addr.ibaddr.dgid;
    to.ep_num = grant().endpoint;
    to.key = grant().endpoint_key;
    to.sgid_index = IndexOf(address.addr.ibaddr.sgid);
    to.traffic_class = path.traffic_class;
    peer_ = calls_.create_peer(resources_.pd, &to, sizeof to);
    if (peer_ == nullptr) return ErrnoStatus("no endpoint of the donor");
    return OkStatus();
  }
  int Post(const Command& command, uint64_t id) override {
    ibv_sge segment{};
    rocegwdv_send_wr request{};
    request.wr = RequestOf(command, id, &segment);
    request.peer = peer_;
    rocegwdv_send_wr* bad = nullptr;
    return calls_.post_send(endpoint_, &request, &bad);
  }
  void Abort() override { BreakQueuePair(endpoint_); }
  bool is_endpoint() const override { return true; }

 private:
  uint8_t IndexOf(const ibv_gid& gid) const {
    ibv_port_attr port{};
    if (ibv_query_port(resources_.pd->context, 1, &port) != 0) return 0;
    for (int index = 0; index < port.gid_tbl_len; index++) {
      ibv_gid each{};
      if (ibv_query_gid(resources_.pd->context, 1, index, &each) == 0 &&
          std::memcmp(&each, &gid, sizeof gid) == 0) {
        return static_cast<uint8_t>(index);
      }
    }
    return 0;
  }

  const PathResources resources_;
  const EndpointCalls& calls_;
  ibv_qp* endpoint_ = nullptr;
  rocegwdv_peer* peer_ = nullptr;
};

// Joining ----------------------------------------------------------------------------------------

struct Answer {
  bool accepted = false;
  std::vector<uint8_t> data;
};

int MillisecondsUntil(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60000));
}

StatusOr<Answer> WaitForAnswer(rdma_cm_id* id, Clock::time_point deadline) {
  pollfd ready{id->channel->fd, POLLIN, 0};
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(id->channel, &event) != 0) {
    if (errno != EAGAIN && errno != EINTR) return ErrnoStatus("no event");
    if (Clock::now() >= deadline) return Status{ETIMEDOUT, "no answer in time"};
    poll(&ready, 1, MillisecondsUntil(deadline));
  }
  const rdma_cm_event_type type = event->event;
  const auto* const data = static_cast<const uint8_t*>(event->param.conn.private_data);
  Answer answer{type == RDMA_CM_EVENT_ESTABLISHED, {}};
  if (data != nullptr) answer.data.assign(data, data + event->param.conn.private_data_len);
  rdma_ack_cm_event(event);
  if (type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_REJECTED) return answer;
  if (type == RDMA_CM_EVENT_UNREACHABLE) return Status{EHOSTUNREACH, "no answer"};
  return Status{ECONNREFUSED, rdma_event_str(type)};
}

// Sends a connection request that says this, from a queue pair of this depth.
StatusOr<Answer> Request(Connection& connection, std::span<const uint8_t> said,
                         const PathResources& resources, uint32_t depth,
                         Clock::time_point deadline) {
  rdma_cm_id* const id = connection.id();
  if (id->verbs != resources.pd->context) {
    return Status{EHOSTUNREACH, "another device reaches the donor"};
  }
  ibv_qp_init_attr attributes{};
  attributes.send_cq = resources.cq;
  attributes.recv_cq = resources.cq;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap.max_send_wr = depth;
  attributes.cap.max_recv_wr = 1;
  attributes.cap.max_send_sge = 1;
  attributes.cap.max_recv_sge = 1;
  if (rdma_create_qp(id, resources.pd, &attributes) != 0) return ErrnoStatus("no queue pair");
  ibv_device_attr device{};
  rdma_conn_param parameters{};
  if (ibv_query_device(id->verbs, &device) == 0) {
    parameters.initiator_depth =
        static_cast<uint8_t>(std::min(kMostPoolReads, device.max_qp_init_rd_atom));
  }
  parameters.private_data = said.data();
  parameters.private_data_len = static_cast<uint8_t>(said.size());
  parameters.retry_count = 7;
  parameters.rnr_retry_count = 7;
  if (rdma_connect(id, &parameters) != 0) return ErrnoStatus("cannot connect");
  return WaitForAnswer(id, deadline);
}

Status StatusOf(const Answer& answer) {
  if (const auto refusal = DecodePoolRefusal(answer.data)) {
    return {refusal->error, refusal->error == EACCES ? "the donor's pool has another secret"
                                                     : std::string("the donor refused: ") +
                                                           std::strerror(refusal->error)};
  }
  return {ECONNREFUSED, "no block pool of this version and secret listens there"};
}

StatusOr<std::unique_ptr<Connection>> Resolved(const std::string& host, const std::string& port,
                                               Clock::time_point deadline) {
  auto connection = std::make_unique<Connection>();
  if (Status status = connection->Resolve(host, port, deadline); !status.ok()) return status;
  return connection;
}

uint64_t IdentityOf(rdma_cm_id* id) {
  uint64_t identity = rdma_get_dst_port(id);
  for (const uint8_t byte : id->route.addr.addr.ibaddr.dgid.raw) identity = Mix(identity ^ byte);
  return identity;
}

}  // namespace

ibv_send_wr DonorPath::RequestOf(const Command& command, uint64_t id, ibv_sge* segment) const {
  *segment = {reinterpret_cast<uintptr_t>(command.local), command.bytes, local_key_};
  ibv_send_wr request{};
  request.wr_id = id;
  request.sg_list = segment;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  if (command.kind == Command::Kind::kCompareSwap) {
    request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    request.wr.atomic = {grant_.address + command.offset, command.expected, command.desired,
                         grant_.key};
  } else {
    request.opcode = command.kind == Command::Kind::kRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    request.wr.rdma = {grant_.address + command.offset, grant_.key};
  }
  return request;
}

bool HasEndpoints(ibv_context* context) { return EndpointCalls::For(context) != nullptr; }

StatusOr<Joined> JoinPool(std::unique_ptr<Connection> resolved, const std::string& host,
                          const std::string& port, const PathResources& resources,
                          const PoolSecret& secret, PathChoice choice, Clock::time_point deadline) {
  Ask ask;
  if (getrandom(&ask.process, sizeof ask.process, 0) != sizeof ask.process) {
    return ErrnoStatus("no random numbers");
  }
  const uint64_t identity = IdentityOf(resolved->id());
  const auto asked = Request(*resolved, Encode(ask), resources, 1, deadline);
  if (!asked.ok()) return asked.status();
  const auto challenge = DecodeChallenge(asked.value().data);
  if (!challenge) return StatusOf(asked.value());

  const EndpointCalls* const calls = EndpointCalls::For(resources.pd->context);
  std::vector<PoolPath> paths;
  if (calls != nullptr && choice != PathChoice::kQueuePairs) paths.push_back(PoolPath::kEndpoint);
  if (choice != PathChoice::kEndpoints) paths.push_back(PoolPath::kQueuePair);
  Status status{EOPNOTSUPP, "this device has no endpoints"};
  for (const PoolPath path : paths) {
    const Join join{ask.process, challenge->donor, path};
    auto connection = Resolved(host, port, deadline);
    if (!connection.ok()) return connection.status();
    const uint32_t depth = path == PoolPath::kQueuePair ? resources.depth : 1;
    const auto answer = Request(**connection, Encode(join, secret), resources, depth, deadline);
    if (!answer.ok()) return answer.status();
    const auto grant = DecodeGrant(answer.value().data, join, secret);
    if (!grant || answer.value().accepted != (path == PoolPath::kQueuePair)) {
      status = StatusOf(answer.value());
      if (status.error() == EOPNOTSUPP) continue;  // the donor's device has no endpoints
      return status;
    }
    if (path == PoolPath::kQueuePair) {
      return Joined{std::make_unique<QueuePairPath>(*grant, std::move(connection.value())),
                    identity};
    }
    auto endpoint = std::make_unique<EndpointPath>(*grant, resources, *calls);
    rdma_cm_id* const id = (*connection)->id();
    static const ibv_sa_path_rec kNoPath{};
    status =
        endpoint->Open(id->route.num_paths > 0 ? id->route.path_rec[0] : kNoPath, id->route.addr);
    if (status.ok()) return Joined{std::move(endpoint), identity};
    // An endpoint cannot reach its own gateway.
  }
  return status;
}

}  // namespace rocegw::far
