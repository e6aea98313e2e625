// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/shared_pool/block_donor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "gateway/base/errno_status.h"
#include "gateway/far/shared_pool/donor_path.h"
#include "gateway/far/shared_pool/endpoint_calls.h"

namespace rocegw::far {
namespace {

constexpr int kTickMilliseconds = 500;
constexpr int kEventsInRound = 16;
constexpr int64_t kLongestSilence = 30;  // Run hangs, if it is longer
constexpr auto kLongestOpening = std::chrono::seconds(5);
// Queue pairs of one pool. A host gets a further one while it has fewer than 8, or fewer than half
// of what is left.
constexpr size_t kMostSessions = 256;
constexpr size_t kSessionsOfAnyHost = 8;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                        IBV_ACCESS_REMOTE_ATOMIC;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::seconds>(Clock::now().time_since_epoch()).count();
}

// Key of the challenges, or of an endpoint. The kernel has random numbers soon after it has booted.
template <typename Key>
Key RandomKey() {
  Key key{};
  while (getrandom(&key, sizeof key, 0) != sizeof key) {
  }
  return key;
}

}  // namespace

// Objects of a device that processes come through. Its members end in reverse order.
struct BlockDonor::Device {
  ~Device() {
    if (endpoint != nullptr) ibv_destroy_qp(endpoint);
    if (mr != nullptr) ibv_dereg_mr(mr);
    if (cq != nullptr) ibv_destroy_cq(cq);
    if (pd != nullptr) ibv_dealloc_pd(pd);
  }

  Status Open(ibv_context* context, uint8_t* memory, uint64_t bytes) {
    pd = ibv_alloc_pd(context);
    if (pd == nullptr) return ErrnoStatus("no protection domain");
    // Nothing is posted to the queue pairs of this side.
    cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
    if (cq == nullptr) return ErrnoStatus("no completion queue");
    mr = ibv_reg_mr(pd, memory, bytes, kAccess);
    if (mr == nullptr) return ErrnoStatus("no memory region");
    const EndpointCalls* const calls = EndpointCalls::For(context);
    if (calls == nullptr) return OkStatus();
    endpoint_key = RandomKey<uint32_t>();
    rocegwdv_ep_init_attr attributes{};
    attributes.send_cq = cq;
    attributes.recv_cq = cq;
    attributes.cap.max_send_wr = 1;
    attributes.cap.max_recv_wr = 1;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_recv_sge = 1;
    attributes.key = endpoint_key;
    attributes.service_mode = ROCEGWDV_SERVICE_UNORDERED;
    endpoint = calls->create_ep(pd, &attributes, sizeof attributes);
    return endpoint != nullptr ? OkStatus() : ErrnoStatus("no endpoint");
  }

  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* endpoint = nullptr;  // nullptr: the device has none
  uint32_t endpoint_key = 0;
};

BlockDonor::BlockDonor(const Settings& settings)
    : settings_(settings),
      secret_(settings.secret),
      challenger_(RandomKey<SecretKey>()),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      allowed_bytes_(settings.bytes) {}

BlockDonor::~BlockDonor() {
  sessions_.clear();
  devices_.clear();
  if (memory_ != nullptr) munmap(memory_, counts_.donated_bytes);
}

Status BlockDonor::MapMemory() {
  const TableShape largest = TableShape::Of(settings_.bytes, settings_.block_bytes);
  if (largest.buckets == 0) return {EINVAL, "the memory has no room for 16 blocks"};
  void* const mapped = mmap(nullptr, largest.bytes(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return ErrnoStatus("no memory");
  memory_ = static_cast<uint8_t*>(mapped);
  const std::lock_guard lock(mutex_);
  counts_.donated_bytes = largest.bytes();
  counts_.blocks = largest.blocks();
  return OkStatus();
}

void BlockDonor::Allow(uint64_t bytes) { allowed_bytes_ = bytes; }

void BlockDonor::Open(const TableShape& shape) {
  joined_ = false;
  const std::lock_guard lock(mutex_);
  shape_ = shape;
  counts_.open_bytes = shape.bytes();
}

// Ends the members' access before the memory is given back, which makes it zero.
void BlockDonor::Close() {
  sessions_.clear();
  devices_.clear();
  madvise(memory_, shape_.bytes(), MADV_DONTNEED);
  closing_since_.reset();
  const std::lock_guard lock(mutex_);
  shape_ = {};
  counts_.open_bytes = 0;
  counts_.closing = false;
}

void BlockDonor::FollowAllowance() {
  const uint64_t allowed = std::min<uint64_t>(allowed_bytes_, settings_.bytes);
  if (shape_.buckets != 0 && shape_.bytes() > allowed) {
    const Clock::time_point now = Clock::now();
    if (!closing_since_) closing_since_ = now;
    if (!joined_ || now - *closing_since_ >= kLeave) Close();
  } else {
    closing_since_.reset();
  }
  const TableShape shape = TableShape::Of(allowed, settings_.block_bytes);
  if (shape_.buckets == 0 && shape.buckets != 0) Open(shape);
  const std::lock_guard lock(mutex_);
  counts_.closing = closing_since_.has_value();
}

Status BlockDonor::Listen(const std::string& host, const std::string& port) {
  if (Status status = MapMemory(); !status.ok()) return status;
  FollowAllowance();
  return listener_.Open(host, port);
}

void BlockDonor::Stop() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_fd_.get(), &one, sizeof one);
}

Status BlockDonor::Run() {
  for (;;) {
    last_round_ = Now();
    FollowAllowance();
    std::array<pollfd, 2> ready{
        {{stop_fd_.get(), POLLIN, 0}, {listener_.channel()->fd, POLLIN, 0}}};
    if (poll(ready.data(), ready.size(), kTickMilliseconds) < 0 && errno != EINTR) {
      return ErrnoStatus("poll");
    }
    if (ready[0].revents != 0) return OkStatus();
    OnEvents();
    if (listener_gone_) return {ENODEV, "the gateway or the RDMA device of this host is gone"};
    EndSilent();
  }
}

bool BlockDonor::IsRunning() const { return Now() - last_round_ <= kLongestSilence; }

BlockDonorCounts BlockDonor::counts() const {
  uint64_t values = 0;
  const auto* const buckets = reinterpret_cast<const Bucket*>(memory_);
  const TableShape shape = [this] {
    const std::lock_guard lock(mutex_);
    return shape_;
  }();
  for (uint64_t bucket = 0; bucket < shape.buckets; bucket++) {
    for (const Entry& entry : buckets[bucket]) {
      const uint64_t word = __atomic_load_n(&entry.control, __ATOMIC_RELAXED);
      values += Control::Decode(word).state == EntryState::kValid ? 1 : 0;
    }
  }
  const std::lock_guard lock(mutex_);
  BlockDonorCounts counts = counts_;
  counts.values = values;
  return counts;
}

void BlockDonor::Count(uint64_t BlockDonorCounts::*member) {
  const std::lock_guard lock(mutex_);
  counts_.*member += 1;
}

StatusOr<BlockDonor::Device*> BlockDonor::DeviceOf(ibv_context* context) {
  std::unique_ptr<Device>& device = devices_[context];
  if (device != nullptr) return device.get();
  auto opened = std::make_unique<Device>();
  if (Status status = opened->Open(context, memory_, shape_.bytes()); !status.ok()) return status;
  device = std::move(opened);
  return device.get();
}

void BlockDonor::OnEvents() {
  for (int taken = 0; taken < kEventsInRound; taken++) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(listener_.channel(), &event) != 0) return;
    rdma_cm_id* const id = event->id;
    const rdma_cm_event_type type = event->event;
    const auto* const data = static_cast<const uint8_t*>(event->param.conn.private_data);
    std::vector<uint8_t> said;
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST && data != nullptr) {
      said.assign(data, data + event->param.conn.private_data_len);
    }
    rdma_ack_cm_event(event);
    const auto number = reinterpret_cast<uintptr_t>(id->context);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      OnRequest(id, said);
    } else if (id == listener_.id()) {
      listener_gone_ = listener_gone_ || type == RDMA_CM_EVENT_DEVICE_REMOVAL;
    } else if (const auto session = sessions_.find(number); session != sessions_.end()) {
      if (type == RDMA_CM_EVENT_ESTABLISHED) {
        session->second.established = true;
      } else {
        sessions_.erase(session);
      }
    }
  }
}

void BlockDonor::Refuse(rdma_cm_id* id, int error) {
  const PoolRefusalBytes said = Encode(PoolRefusal{error});
  rdma_reject(id, said.data(), said.size());
  Count(error == EACCES      ? &BlockDonorCounts::refused_secret
        : error == EBUSY     ? &BlockDonorCounts::refused_limit
        : error == ESHUTDOWN ? &BlockDonorCounts::refused_closed
                             : &BlockDonorCounts::refused_other);
}

void BlockDonor::OnRequest(rdma_cm_id* id, std::span<const uint8_t> said) {
  auto connection = std::make_unique<Connection>(id);  // destroys the identifier
  const std::string host = PeerAddress(id);
  if (const auto ask = DecodeAsk(said)) {
    const ChallengeBytes answer =
        Encode(Challenge{challenger_.Make(ask->process, host, static_cast<uint64_t>(Now()))});
    rdma_reject(id, answer.data(), answer.size());
    return;
  }
  OnJoin(std::move(connection), said, host);
}

void BlockDonor::OnJoin(std::unique_ptr<Connection> connection, std::span<const uint8_t> said,
                        const std::string& host) {
  rdma_cm_id* const id = connection->id();
  const auto join = DecodeJoin(said);
  if (!join) return Refuse(id, EPROTO);
  if (!challenger_.Holds(*join, host, static_cast<uint64_t>(Now())) || !Proves(said, secret_)) {
    return Refuse(id, EACCES);
  }
  if (shape_.buckets == 0 || closing_since_) return Refuse(id, ESHUTDOWN);
  joined_ = true;
  const auto device = DeviceOf(id->verbs);
  if (!device.ok()) return Refuse(id, device.status().error());
  const Device& used = *device.value();
  PoolGrant grant;
  grant.path = join->path;
  grant.address = reinterpret_cast<uintptr_t>(memory_);
  grant.key = used.mr->rkey;
  grant.shape = shape_;
  if (join->path == PoolPath::kEndpoint) {
    if (used.endpoint == nullptr) return Refuse(id, EOPNOTSUPP);
    grant.endpoint = used.endpoint->qp_num;
    grant.endpoint_key = used.endpoint_key;
    const GrantBytes granted = Encode(grant, *join, secret_);
    rdma_reject(id, granted.data(), granted.size());
    return Count(&BlockDonorCounts::joined_endpoint);
  }
  if (!HasRoomFor(host)) return Refuse(id, EBUSY);
  if (!Accept(*connection, used, Encode(grant, *join, secret_)).ok()) return Refuse(id, ENOMEM);
  const uint64_t number = ++last_session_;
  id->context = reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr)
  sessions_[number] = {std::move(connection), host, Clock::now(), false};
  Count(&BlockDonorCounts::joined_queue_pair);
}

Status BlockDonor::Accept(Connection& connection, const Device& device, const GrantBytes& said) {
  rdma_cm_id* const id = connection.id();
  ibv_qp_init_attr attributes{};
  attributes.send_cq = device.cq;
  attributes.recv_cq = device.cq;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap.max_send_wr = 1;
  attributes.cap.max_recv_wr = 1;
  attributes.cap.max_send_sge = 1;
  attributes.cap.max_recv_sge = 1;
  if (rdma_create_qp(id, device.pd, &attributes) != 0) return ErrnoStatus("no queue pair");
  ibv_device_attr limits{};
  rdma_conn_param parameters{};
  if (ibv_query_device(id->verbs, &limits) == 0) {
    parameters.responder_resources =
        static_cast<uint8_t>(std::min(kMostPoolReads, limits.max_qp_rd_atom));
  }
  parameters.private_data = said.data();
  parameters.private_data_len = said.size();
  parameters.retry_count = 7;
  parameters.rnr_retry_count = 7;
  if (rdma_accept(id, &parameters) != 0) return ErrnoStatus("cannot accept");
  return OkStatus();
}

bool BlockDonor::HasRoomFor(const std::string& host) const {
  const auto of_host = static_cast<size_t>(
      std::count_if(sessions_.begin(), sessions_.end(),
                    [&host](const auto& each) { return each.second.host == host; }));
  const size_t left = kMostSessions - std::min(kMostSessions, sessions_.size());
  return left != 0 && (of_host < kSessionsOfAnyHost || of_host < left / 2);
}

// Ends connections that were not established in time, so that they take no room of others.
void BlockDonor::EndSilent() {
  const Clock::time_point now = Clock::now();
  std::erase_if(sessions_, [now](const auto& each) {
    return !each.second.established && now - each.second.since > kLongestOpening;
  });
  const std::lock_guard lock(mutex_);
  counts_.connections = sessions_.size();
}

}  // namespace rocegw::far
