// SPDX-License-Identifier: Apache-2.0
#include "tests/support/session/state_world.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "gateway/hand_over/state_stream.h"
#include "gateway/memory/cross_process.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::testing {
namespace {

constexpr SessionId kSession{1};
constexpr uint32_t kCq = 1;
constexpr MemoryKey kKey{0x5AFE0001};
constexpr uint32_t kMemory = 4096;
constexpr uint32_t kLength = 64;
// Numbers of one bucket; channels' and the acceptor's lie behind those of queue pairs.
constexpr uint32_t kNumbers = 1u << port::kBucketShift;
constexpr uint32_t kFirstChannel = kNumbers / 2;

double ThreadCpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Scattered over the bucket, each once.
uint32_t NumberOf(uint32_t index) { return (index + 16) * 0x9E3779B1 % kNumbers; }

}  // namespace

StateWorld::StateWorld(uint32_t endpoints, uint32_t peers) {
  port::PairConfig config;
  config.packets_per_queue = 1024;
  link_ = std::make_unique<port::PairLink>(config);
  for (int side = 0; side < 2; ++side) Build(side, endpoints, peers);
}

StateWorld::~StateWorld() {
  for (Side& side : sides_) {
    side.worker.reset();
    close(side.link.worker_wake_fd);
    close(side.wake_fd);
    close(side.control_fd);
  }
}

std::unique_ptr<worker::Worker> StateWorld::MakeWorker(int side) {
  worker::WorkerOptions options;
  options.ports = {&link_->port(side, 0)};
  options.link = &sides_[side].link;
  options.inboxes = {&sides_[side].inbox};
  options.steering = port::SteeringTable(1);
  options.counters = &sides_[side].counters;
  options.start = now_;
  return std::make_unique<worker::Worker>(options);
}

void StateWorld::Build(int index, uint32_t endpoints, uint32_t peers) {
  Side& side = sides_[index];
  side.memory.resize(kMemory);
  side.space = std::make_unique<memory::CrossProcessMemory>(getpid(), locks_);
  RingOptions ring;
  ring.handle = kCq;
  ring.sq_entries = ring.rq_entries = 2;
  ring.cq_entries = 1u << 20;
  side.cq = std::make_unique<RingEnd>(ring);
  ring.cq_entries = 1;
  ring.max_sge = 1;
  for (uint32_t i = 0; i < endpoints; ++i) {
    ring.qpn = NumberOf(i);
    ring.handle = i % ROCEGW_DOORBELL_BITS;
    ring.sq_entries = ring.rq_entries = kRing;
    side.ends.push_back(std::make_unique<RingEnd>(ring));
  }
  side.link.worker_wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  side.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  side.control_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  side.link.control_wake_fd = side.control_fd;
  side.inbox.wake_fd = side.link.worker_wake_fd;
  side.worker = MakeWorker(index);

  channel::ChannelOptions channels;
  channels.acceptor = AcceptorOf();
  for (uint32_t i = 1; i <= peers; ++i)
    channels.numbers.push_back(Qpn{NumberOf(kFirstChannel + i)});
  channels.features = wire::kOptionChannel | wire::kOptionSelectiveAck | wire::kOptionCcMask;
  channels.instance = 1000 + static_cast<uint32_t>(index);
  channels.secret = {0x1234 + static_cast<uint64_t>(index), 7};
  // All peers are one gateway here.
  channels.half_open_limit = peers;
  Link(index, {0, worker::UseChannels{channels}});
  worker::LinkSession session;
  session.session = kSession;
  session.space = side.space.get();
  session.line = &side.line;
  session.wake_fd = side.wake_fd;
  Link(index, {0, session});
  for (uint32_t i = 0; i * ROCEGW_DOORBELL_BITS < endpoints; ++i) {
    side.pages.push_back(std::make_unique<rocegw_doorbell_page>());
    Link(index, {0, worker::AddDoorbellPage{kSession, i, side.pages[i].get()}});
  }
  Link(index, {0, worker::LinkCq{side.cq->Cq()}});
  verbs::RegionConfig region;
  region.key = kKey;
  region.session = kSession;
  region.pd = 1;
  region.access = verbs::kAccessLocalWrite | verbs::kAccessRemoteRead | verbs::kAccessRemoteWrite;
  region.iova = region.address = reinterpret_cast<uint64_t>(side.memory.data());
  region.length = region.direct_length = side.memory.size();
  region.direct = side.memory.data();
  Link(index, {0, worker::LinkRegion{region}});
}

Qpn StateWorld::AcceptorOf() { return Qpn{NumberOf(kFirstChannel)}; }

wire::Gid StateWorld::GidOf(int side, uint32_t peer) {
  return side == 0 ? wire::Gid::FromV4(0x0A000001) : wire::Gid::FromV4(0x0A010000 + peer);
}

void StateWorld::Run(int side) {
  if (side == 0 && entering_ != nullptr) entering_(true);
  sides_[side].worker->RunOnce(now_);
  if (side == 0 && entering_ != nullptr) entering_(false);
}

void StateWorld::Step(Duration by) {
  now_ = now_ + by;
  for (int side = 0; side < 2; ++side) Run(side);
}

int StateWorld::Call(int side, worker::ControlMessage message) {
  message.cookie = ++cookie_;
  if (!sides_[side].link.to_worker.Push(std::move(message))) return EAGAIN;
  for (;;) {
    Run(side);
    worker::WorkerMessage answer;
    while (sides_[side].link.to_control.Pop(answer)) {
      if (answer.cookie == cookie_) return std::get<worker::ControlReply>(answer.body).error;
    }
  }
}

int StateWorld::Link(int side, const worker::ControlMessage& message) {
  if (side == 0) linked_.push_back(message);
  return Call(side, message);
}

std::optional<StateWorld::HandOverTimes> StateWorld::HandOver() {
  while (!sides_[0].worker->Rest(now_)) {
  }
  const double begin = ThreadCpuSeconds();
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  hand_over::StateStream out(bytes, now_, versions);
  sides_[0].worker->HandOver(out);
  const double written = ThreadCpuSeconds();
  std::unique_ptr<worker::Worker> fresh = MakeWorker(0);
  for (const worker::ControlMessage& message : linked_) {
    sides_[0].link.to_worker.Push(worker::ControlMessage(message));
    fresh->Prepare(now_);
  }
  const double built = ThreadCpuSeconds();
  hand_over::StateStream in(bytes, now_);
  fresh->HandOver(in);
  const double read = ThreadCpuSeconds();
  if (!out.ok() || !in.ok() || !in.at_end()) return std::nullopt;
  sides_[0].worker = std::move(fresh);
  return HandOverTimes{written - begin, read - built, bytes.size()};
}

bool StateWorld::Link(uint32_t endpoint) {
  for (int side = 0; side < 2; ++side) {
    verbs::QpConfig config = sides_[side].ends[endpoint]->Qp();
    config.send_cq = config.recv_cq = kCq;
    config.doorbell_page = endpoint / ROCEGW_DOORBELL_BITS;
    config.doorbell_bit = endpoint % ROCEGW_DOORBELL_BITS;
    if (Link(side, {0, worker::LinkQp{config}}) != 0) return false;
  }
  return true;
}

verbs::QpAttributes StateWorld::AttributesOf(int side, uint32_t endpoint, uint32_t peer) {
  verbs::QpAttributes want;
  want.path_mtu = 5;
  want.max_rd_atomic = want.max_dest_rd_atomic = 1;
  want.timeout = 14;
  want.retry_count = 7;
  want.rnr_retry = 7;
  want.min_rnr_timer = 1;
  want.access = verbs::kAccessRemoteRead | verbs::kAccessRemoteWrite;
  want.path.source = GidOf(side, peer);
  want.path.destination = GidOf(1 - side, peer);
  want.dest_qpn = Qpn{NumberOf(endpoint)};
  return want;
}

bool StateWorld::Modify(int side, uint32_t endpoint, uint32_t peer, verbs::QpState state) {
  using namespace verbs;  // NOLINT(google-build-using-namespace)
  worker::ModifyQp body{
      kSession, Qpn{NumberOf(endpoint)}, 0, AttributesOf(side, endpoint, peer), {}};
  body.attributes.state = state;
  switch (state) {
    case QpState::kInit:
      body.mask = kAttrPkeyIndex | kAttrPort | kAttrAccessFlags;
      break;
    case QpState::kRtr:
      body.mask = kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic |
                  kAttrMinRnrTimer;
      if (!native_)
        body.channel = verbs::ChannelTarget{.peer = GidOf(1 - side, peer),
                                            .acceptor = AcceptorOf(),
                                            .instance = 1000 + static_cast<uint32_t>(1 - side)};
      break;
    default:
      body.mask = kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrSqPsn | kAttrMaxQpRdAtomic;
      break;
  }
  body.mask |= kAttrState;
  return Call(side, {0, body}) == 0;
}

bool StateWorld::Connect(uint32_t endpoint, uint32_t peer) {
  if (!Link(endpoint)) return false;
  for (int side = 0; side < 2; ++side) {
    for (const verbs::QpState state :
         {verbs::QpState::kInit, verbs::QpState::kRtr, verbs::QpState::kRts}) {
      if (!Modify(side, endpoint, peer, state)) return false;
    }
  }
  // The channel is opened before anything else needs it.
  for (int i = 0; i < 4; ++i) Step(Microseconds(1));
  return true;
}

void StateWorld::Post(int side, uint32_t endpoint, uint8_t opcode) {
  rocegw_send_wqe wqe{};
  wqe.opcode = opcode;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  if (opcode != ROCEGW_WR_SEND) {
    wqe.u.rdma.remote_address = reinterpret_cast<uint64_t>(sides_[1 - side].memory.data());
    wqe.u.rdma.rkey = kKey.value;
  }
  const rocegw_sge from{reinterpret_cast<uint64_t>(sides_[side].memory.data()), kLength,
                        kKey.value};
  sides_[side].ends[endpoint]->PostSend(wqe, {from});
}

void StateWorld::Ring(int side, uint32_t endpoint) {
  Side& own = sides_[side];
  if (own.ends[endpoint]->Ring(*own.pages[endpoint / ROCEGW_DOORBELL_BITS], own.line))
    own.worker->OnWake(kSession, now_);
}

bool StateWorld::Write(int side, uint32_t endpoint) {
  const metrics::WorkerCounters& counters = sides_[side].counters;
  const uint64_t done = counters.cqe_entries.Read() + 1;
  Post(side, endpoint, ROCEGW_WR_RDMA_WRITE);
  Ring(side, endpoint);
  for (int step = 0; step < 1000 && counters.cqe_entries.Read() != done; ++step)
    Step(Microseconds(10));
  return counters.cqe_entries.Read() == done && counters.cqe_error_entries.Read() == 0;
}

bool StateWorld::Exchange(uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; ++i) {
    uint64_t done[2];
    for (int side = 0; side < 2; ++side) {
      Side& own = sides_[side];
      const rocegw_sge into{reinterpret_cast<uint64_t>(own.memory.data()) + kMemory / 2, kLength,
                            kKey.value};
      own.ends[i]->PostReceive(i, {into});
      Post(side, i, ROCEGW_WR_SEND);
      Post(side, i, ROCEGW_WR_RDMA_WRITE);
      done[side] = own.counters.cqe_entries.Read() + 3;
    }
    for (int side = 0; side < 2; ++side) Ring(side, i);
    for (int step = 0; step < 1000; ++step) {
      Step(Microseconds(10));
      if (sides_[0].counters.cqe_entries.Read() == done[0] &&
          sides_[1].counters.cqe_entries.Read() == done[1]) {
        break;
      }
    }
    for (int side = 0; side < 2; ++side) {
      if (sides_[side].counters.cqe_entries.Read() != done[side]) return false;
      if (sides_[side].counters.cqe_error_entries.Read() != 0) return false;
    }
  }
  return true;
}

void StateWorld::Rest(Duration time) {
  const Duration step = time / 64;
  for (int i = 0; i < 64; ++i) {
    Step(step);
    for (int k = 0; k < 8; ++k) Step(Microseconds(1));
  }
}

}  // namespace rocegw::testing
