// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/hostile/hostile_world.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "gateway/verbs/qp_state.h"
#include "tests/fuzz/hostile/racer.h"

namespace rocegw::testing {
namespace {

using verbs::QpType;

constexpr size_t kGoodMessages = 4;  // that each of the good programs sends in a batch
constexpr size_t kGoodBytes = 256;
constexpr int kMostTurns = 4000;
constexpr std::chrono::seconds kGoneWithin(10);

session::Options Settings(bool channels) {
  session::Options options;
  // Answers come at once, however many requests there are: the seed alone decides.
  options.session.request_burst = ~uint32_t{0};
  options.gateways.channels = channels;
  options.gateways.window = 1 << 20;
  options.placement = MemoryPlacement::kEnabled;
  options.gateways.features |= wire::kOptionPlacement;
  options.limits.segment_bytes = uint64_t{256} << 20;
  return options;
}

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

// What the other end of a queue pair of that type is.
QpType PeerOf(QpType type) {
  if (type == QpType::kXrcSend) return QpType::kXrcReceive;
  return type == QpType::kXrcReceive ? QpType::kXrcSend : type;
}

void SetState(TestClient& client, const ClientQp& qp, verbs::QpState state) {
  rocegw_qp_attr attr{};
  attr.qp_state = static_cast<uint32_t>(state);
  client.Modify(qp.reply().handle, verbs::kAttrState, attr);
}

}  // namespace

HostileWorld::HostileWorld(uint64_t seed, bool channels, Descriptions descriptions)
    : descriptions_(descriptions),
      random_(seed),
      channels_(channels),
      left_(1, Settings(channels), false, WorkerHost::LinkFor(1), 0),
      right_(1, Settings(channels), false, left_.link(), 1) {
  left_.TurnsWith(&right_);
  right_.TurnsWith(&left_);
  void* const hole =
      ::mmap(nullptr, kMemory, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  Require(hole != MAP_FAILED, "mmap");
  hole_ = static_cast<uint8_t*>(hole);
  Begin(left_, good_[0]);
  Begin(right_, good_[1]);
  Begin(right_, victim_);
  for (size_t side = 0; side < 2; ++side) good_qp_[side] = NewQp(good_[side], QpType::kRc);
  for (int side = 0; side < 2; ++side) {
    const WorkerHost::Peer peer{good_qp_[1 - side].reply().qpn, WorkerHost::GidOf(1 - side)};
    Require(WorkerHost::Connect(good_[side].client(), good_qp_[side].reply().handle, peer) == 0,
            "good queue pairs do not connect");
  }
  GoodExchange();
  for (int turn = 0; turn < kMostTurns && arrived_[0] + arrived_[1] < 2 * kGoodMessages; ++turn) {
    left_.Turn();
    Poll();
  }
  held_at_first_ = Held();
  heap_at_first_ = HeapInUse();
  BeginHostile();
}

HostileWorld::~HostileWorld() {
  left_.TurnsWith(nullptr);
  right_.TurnsWith(nullptr);
  ::munmap(hole_, kMemory);
}

// What can leak on the left: amounts of the quota, keys, sessions, descriptors.
std::vector<uint64_t> HostileWorld::Held() const {
  std::vector<uint64_t> held;
  session::Services& services = left_.server->services();
  for (size_t i = 0; i < static_cast<size_t>(session::Resource::kCount); ++i)
    held.push_back(services.pools.gateway().used(static_cast<session::Resource>(i)));
  held.push_back(services.keys.in_use());
  held.push_back(left_.server->session_count());
  held.push_back(OpenDescriptors());
  return held;
}

void HostileWorld::Begin(WorkerHost& host, Program& program) {
  program.base.client = host.Join(session::kDefaultPool);
  TestClient& client = program.client();
  Require(client.Hello(), "no greeting");
  program.context = client.OpenContext();
  program.base.pd = client.AllocPd(program.context);
  const rocegw_cq_reply cq = client.CreateCq(program.context, 8 * kDepth);
  program.base.cq = cq.handle;
  program.cq = ClientCq(client, cq);
  program.key =
      client.RegMr(program.base.pd, program.at(), kMemory, 15 | verbs::kAccessFlushGlobal).lkey;
  Require(client.error() == 0, "no region");
  auto domain = TestClient::Request<rocegw_open_xrcd>(ROCEGW_MSG_OPEN_XRCD);
  domain.context = program.context;
  domain.flags = ROCEGW_XRCD_CREATE;
  program.xrcd = client.Call<rocegw_object_reply>(domain).handle;
  Require(client.error() == 0, "no XRC domain");
}

ClientSrq HostileWorld::NewSrq(Program& program, bool xrc) {
  auto request = TestClient::Request<rocegw_create_srq>(ROCEGW_MSG_CREATE_SRQ);
  request.pd = program.base.pd;
  request.max_wr = kDepth;
  request.max_sge = 4;
  if (xrc) {
    request.xrcd = program.xrcd;
    request.cq = program.base.cq;
  }
  const auto reply = program.client().Call<rocegw_srq_reply>(request);
  Require(program.client().error() == 0, "no shared receive queue");
  return {program.client(), reply};
}

ClientQp HostileWorld::NewQp(Program& program, QpType type, uint32_t srq) {
  auto request = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
  if (type == QpType::kXrcReceive) {
    request.type = ROCEGW_QPT_XRC_RECV;
    request.xrcd = program.xrcd;
  } else {
    request = TestClient::QpRequest(program.base.pd, program.base.cq, static_cast<uint32_t>(type),
                                    kDepth);
    request.max_send_sge = request.max_recv_sge = 4;
    request.max_inline = 64;
    request.signal_all = 1;
    request.srq = srq;
    if (type == QpType::kEndpoint) {
      request.service_mode =
          random_.Coin() ? ROCEGW_SERVICE_UNORDERED : ROCEGW_SERVICE_BY_INITIATOR;
      request.on_failure = random_.Coin() ? ROCEGW_EP_SUSPEND : ROCEGW_EP_CONTINUE;
    }
  }
  const auto reply = program.client().Call<rocegw_qp_reply>(request);
  Require(program.client().error() == 0, "no queue pair");
  return {program.client(), reply};
}

uint32_t HostileWorld::NewPeer(Program& program, const ClientQp& endpoint,
                               const wire::Gid& gateway) {
  auto request = TestClient::Request<rocegw_create_peer>(ROCEGW_MSG_CREATE_PEER);
  request.pd = program.base.pd;
  request.qpn = endpoint.reply().qpn;
  request.key = WorkerHost::kQkey;
  std::memcpy(request.av.dgid, gateway.bytes.data(), sizeof request.av.dgid);
  request.av.hop_limit = 64;
  const uint32_t handle = program.client().Call<rocegw_object_reply>(request).handle;
  Require(program.client().error() == 0 || program.client().closed(), "no peer");
  return program.client().closed() ? 0 : handle;
}

void HostileWorld::BeginHostile() {
  hostile_.emplace();
  Begin(left_, *hostile_);
  TestClient& client = hostile_->client();
  const uint32_t pd = hostile_->base.pd;
  around_.memory = hostile_->at();
  around_.memory_bytes = kMemory;
  around_.local_keys = {
      hostile_->key, client.RegMr(pd, hostile_->at(), kMemory, 0).lkey,
      client.RegMr(client.AllocPd(hostile_->context), hostile_->at(), kMemory, 15).lkey};
  around_.hole = reinterpret_cast<uint64_t>(hole_);
  around_.hole_key = client.RegMr(pd, around_.hole, kMemory, 7).lkey;
  Require(client.error() == 0, "no region");
  auto window = TestClient::Request<rocegw_alloc_mw>(ROCEGW_MSG_ALLOC_MW);
  window.pd = pd;
  window.type = 2;
  around_.window = client.Call<rocegw_mw_reply>(window).rkey;
  if (around_.remote_keys.empty()) {
    TestClient& victim = victim_.client();
    const uint32_t theirs = victim_.base.pd;
    around_.peer_memory = victim_.at();
    around_.remote_keys = {victim_.key, victim.RegMr(theirs, victim_.at(), kMemory, 1).rkey,
                           victim.RegMr(theirs, victim_.at(), 4096, 5).rkey};
    around_.qkey = WorkerHost::kQkey;
    const wire::Gid peer = WorkerHost::GidOf(1);
    std::memcpy(around_.address.dgid, peer.bytes.data(), sizeof around_.address.dgid);
    around_.address.hop_limit = 64;
    const std::pair<QpType, bool> kinds[] = {{QpType::kRc, false},       {QpType::kUc, false},
                                             {QpType::kUd, false},       {QpType::kRc, true},
                                             {QpType::kUd, true},        {QpType::kXrcSend, false},
                                             {QpType::kXrcReceive, true}};
    for (const auto& [type, shared] : kinds)
      lines_.push_back({type, shared, {}, NewQp(victim_, PeerOf(type)), {}});
    // Endpoints reach each other by channels only.
    for (const bool shared : {false, true}) {
      if (channels_)
        lines_.push_back({QpType::kEndpoint, shared, {}, NewQp(victim_, QpType::kEndpoint), {}});
    }
    victim_receives_ = NewSrq(victim_, true);
    around_.peer_srq = victim_receives_.reply().number;
  }
  for (Line& line : lines_) {
    if (line.shares_receives) {
      line.receives = NewSrq(*hostile_, verbs::IsXrc(line.type));
      line.receives_done = 0;
    }
    line.hostile = NewQp(*hostile_, line.type,
                         line.shares_receives && line.sends() ? line.receives.reply().handle : 0);
    if (line.is_endpoint()) {
      if (line.peer_of_victim != 0)
        victim_.client().Object(ROCEGW_MSG_DESTROY_PEER, line.peer_of_victim);
      line.peer_of_hostile = NewPeer(*hostile_, line.victim, WorkerHost::GidOf(1));
      line.peer_of_victim = NewPeer(victim_, line.hostile, WorkerHost::GidOf(0));
    }
    ConnectLine(line);
  }
}

void HostileWorld::ConnectLine(Line& line) {
  SetState(hostile_->client(), line.hostile, verbs::QpState::kReset);
  SetState(victim_.client(), line.victim, verbs::QpState::kReset);
  Poll();
  const WorkerHost::Peer to_left{line.hostile.reply().qpn, WorkerHost::GidOf(0)};
  const WorkerHost::Peer to_right{line.victim.reply().qpn, WorkerHost::GidOf(1)};
  if (line.type == QpType::kUd) around_.peer_qpn = line.victim.reply().qpn;
  if (line.is_endpoint()) around_.peer = line.peer_of_hostile;
  Require(WorkerHost::Connect(victim_.client(), line.victim.reply().handle, to_left,
                              PeerOf(line.type)) == 0,
          "the victim's queue pair does not connect");
  const int error =
      WorkerHost::Connect(hostile_->client(), line.hostile.reply().handle, to_right, line.type);
  // An impossible index ends the session when the queue pair is reset, too.
  Require(error == 0 || HostileGone(), "a hostile queue pair does not connect");
}

bool HostileWorld::HostileGone() { return hostile_->client().closed(); }

void HostileWorld::PostForVictim(Line& line) {
  const uint32_t key = around_.remote_keys.front();
  const rocegw_sge all{victim_.at(), kMemory, key};
  if (line.type == QpType::kXrcSend) {
    while (victim_receives_.control().producer - victim_receives_done_ < kDepth)
      victim_receives_.PostReceive(0, {&all, 1});
    return;
  }
  if (line.type != QpType::kXrcReceive)
    for (uint32_t i = 0; i < kDepth; ++i) line.victim.PostReceive(i, {&all, 1});
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_SEND;
  wqe.u.ud.remote_qpn = line.hostile.reply().qpn;
  wqe.u.ud.remote_qkey = WorkerHost::kQkey;
  if (line.type == QpType::kUd) {
    const wire::Gid peer = WorkerHost::GidOf(0);
    std::memcpy(wqe.u.ud.av.dgid, peer.bytes.data(), sizeof wqe.u.ud.av.dgid);
    wqe.u.ud.av.hop_limit = 64;
  } else {
    wqe.u = {};
    if (line.type == QpType::kXrcReceive) wqe.u.rdma.peer = line.receives.reply().number;
    if (line.is_endpoint()) wqe.u.rdma.peer = line.peer_of_victim;
  }
  const rocegw_sge some{victim_.at(), static_cast<uint32_t>(random_.Below(600)), key};
  for (size_t n = random_.Below(6); n != 0; --n) line.victim.PostSend(wqe, {&some, 1});
  line.victim.Ring();
}

// The good programs send each other messages, the payload in the rings.
void HostileWorld::GoodExchange() {
  for (int side = 0; side < 2; ++side) {
    arrived_[side] = 0;
    expected_[side].clear();
  }
  for (int side = 0; side < 2; ++side) {
    ClientQp& to = good_qp_[1 - side];
    ClientQp& from = good_qp_[side];
    for (size_t i = 0; i < kGoodMessages; ++i) {
      const rocegw_sge room{good_[1 - side].at(), static_cast<uint32_t>(kGoodBytes),
                            good_[1 - side].key};
      to.PostReceive(i, {&room, 1});
      const std::vector<uint8_t> bytes =
          random_.Bytes(random_.Between(1, std::min(kGoodBytes, from.SendPayload(0).size())));
      const auto payload = from.SendPayload(from.control().sq_producer);
      std::copy(bytes.begin(), bytes.end(), payload.begin());
      rocegw_send_wqe wqe{};
      wqe.wr_id = i;
      wqe.opcode = ROCEGW_WR_SEND;
      wqe.flags = ROCEGW_WQE_INLINE;
      const rocegw_sge piece{0, static_cast<uint32_t>(bytes.size()), 0};
      from.PostSend(wqe, {&piece, 1});
      expected_[1 - side].push_back(bytes);
    }
  }
  for (ClientQp& qp : good_qp_) qp.Ring();
}

void HostileWorld::TakeGoodOnes(int side) {
  for (const rocegw_cqe& cqe : good_[side].cq.Poll()) {
    Require(cqe.status == 0, "a good program has a completion with an error");
    if ((cqe.flags & ROCEGW_CQE_RECEIVE) == 0) continue;
    Require(arrived_[side] < expected_[side].size(), "a good program got a message twice");
    const std::vector<uint8_t>& bytes = expected_[side][arrived_[side]++];
    Require(cqe.byte_length == bytes.size() && (cqe.flags & ROCEGW_CQE_PAYLOAD_IN_RING) != 0 &&
                std::memcmp(good_qp_[side].ReceivePayload(cqe.ring_slot), bytes.data(),
                            bytes.size()) == 0,
            "a good program got other bytes than were sent");
    ++figures_.good_messages;
  }
}

void HostileWorld::Poll() {
  TakeGoodOnes(0);
  TakeGoodOnes(1);
  const auto by_endpoint = [&](const rocegw_cqe& cqe, ClientQp Line::*side) {
    const bool its = std::ranges::any_of(lines_, [&](const Line& line) {
      return line.is_endpoint() && cqe.qpn == (line.*side).reply().qpn;
    });
    return its && (cqe.flags & ROCEGW_CQE_RECEIVE) != 0 && cqe.status == 0 ? 1 : 0;
  };
  for (const rocegw_cqe& cqe : victim_.cq.Poll()) {
    figures_.by_endpoint += by_endpoint(cqe, &Line::victim);
    if ((cqe.flags & ROCEGW_CQE_XRC) == 0) continue;
    ++victim_receives_done_;
    figures_.by_xrc += cqe.status == 0 ? 1 : 0;
  }
  if (!hostile_) return;
  for (const rocegw_cqe& cqe : hostile_->cq.Poll()) {
    ++figures_.completions[cqe.status];
    completed_.push_back(cqe);
    figures_.by_endpoint += by_endpoint(cqe, &Line::hostile);
    if ((cqe.flags & ROCEGW_CQE_RECEIVE) == 0) continue;
    figures_.by_xrc += (cqe.flags & ROCEGW_CQE_XRC) != 0 && cqe.status == 0 ? 1 : 0;
    for (Line& line : lines_) {
      const bool its = (cqe.flags & ROCEGW_CQE_XRC) != 0
                           ? line.shares_receives && cqe.qp_handle == line.receives.reply().handle
                           : cqe.qpn == line.hostile.reply().qpn;
      if (its) ++line.receives_done;
    }
  }
}

void HostileWorld::RunUntilQuiet(Line& line, const Written& written) {
  const auto sends = [&] {
    return std::count_if(completed_.begin(), completed_.end(), [&](const rocegw_cqe& cqe) {
      return (cqe.flags & ROCEGW_CQE_RECEIVE) == 0 && cqe.qpn == line.hostile.reply().qpn;
    });
  };
  for (int turn = 0; turn < kMostTurns; ++turn) {
    left_.Turn();
    Poll();
    if (line.is_endpoint() && random_.Below(16) == 0) {
      // The peer suspends and drains its endpoint as well, at moments of its own.
      if (random_.Below(4) == 0) {
        MoveEndpoint(victim_, line.victim);
      } else if (!HostileGone()) {
        MoveEndpoint(*hostile_, line.hostile);
      }
    }
    const bool good_done = arrived_[0] == expected_[0].size() && arrived_[1] == expected_[1].size();
    // Who takes longer than that is waited for only if that is a good one.
    if (good_done && (sends() >= written.sends || turn > 60)) return;
  }
  throw std::runtime_error("the good programs' messages do not arrive");
}

// However it went, the error state ends it: each descriptor has one completion, with a reason.
void HostileWorld::JudgeLine(Line& line, const Written& written, uint64_t errors_before,
                             uint64_t bad_before) {
  SetState(hostile_->client(), line.hostile, verbs::QpState::kError);
  for (int turn = 0; turn < kMostTurns && line.sends() && hostile_->client().error() == 0; ++turn) {
    left_.Turn();
    Poll();
    if (line.hostile.status().sq_released == line.hostile.control().sq_producer) break;
  }
  left_.Settle();
  Poll();
  using Counters = metrics::WorkerCounters;
  const uint64_t bad = left_.Count(&Counters::wqe_bad_requests) - bad_before;
  figures_.refused_when_read += bad;
  if (!written.exact || HostileGone()) return;
  constexpr auto kFlushed = static_cast<uint8_t>(verbs::WcStatus::kFlush);
  uint64_t errors = 0;
  uint32_t sends = 0;
  uint32_t bad_receives = 0;  // at most: some are only too short
  for (const rocegw_cqe& cqe : completed_) {
    errors += cqe.status != 0 ? 1 : 0;
    if ((cqe.flags & ROCEGW_CQE_RECEIVE) != 0 && cqe.status != 0 && cqe.status != kFlushed)
      ++bad_receives;
    sends += (cqe.flags & ROCEGW_CQE_RECEIVE) == 0 && cqe.qpn == line.hostile.reply().qpn ? 1 : 0;
  }
  Require(sends == written.sends,
          std::to_string(written.sends) + " sends have " + std::to_string(sends) + " completions");
  Require(left_.Count(&Counters::cqe_error_entries) - errors_before == errors,
          "completions with errors are not counted as they are");
  // Those of an endpoint that was suspended are flushed unread.
  const uint32_t least = line.type == QpType::kUd || line.is_endpoint() ? 0 : written.malformed;
  Require(
      bad >= least && bad <= written.malformed + bad_receives,
      std::to_string(written.malformed) + " bad descriptors, " + std::to_string(bad) + " counted");
}

void HostileWorld::CheckMargins(const Program& program, const char* whose) const {
  const auto untouched = [](const uint8_t* from) {
    return std::all_of(from, from + kMemory, [](uint8_t byte) { return byte == 0xEE; });
  };
  Require(untouched(program.memory.data()) && untouched(program.memory.data() + 2 * kMemory),
          std::string("bytes beside the region have changed: ") + whose);
}

void HostileWorld::Batch() {
  using Counters = metrics::WorkerCounters;
  Line& line = lines_[random_.Below(lines_.size())];
  ++figures_.batches;
  const uint64_t faults_before = left_.Count(&Counters::client_fault_events);
  ConnectLine(line);
  completed_.clear();
  const uint64_t errors_before = left_.Count(&Counters::cqe_error_entries);
  const uint64_t bad_before = left_.Count(&Counters::wqe_bad_requests);
  Written written;
  if (!HostileGone()) {
    PostForVictim(line);
    WriteDescriptors(line, written);
    Mischief(line, written);
    if (line.sends()) line.hostile.Ring();
  }
  GoodExchange();
  {
    std::optional<Racer> racer;
    if (descriptions_ == Descriptions::kRacing && !HostileGone()) {
      racer.emplace(SlotsOf(line), random_.Bits());
      written.exact = false;
    }
    RunUntilQuiet(line, written);
    if (racer) figures_.raced += racer->changes();
  }
  JudgeLine(line, written, errors_before, bad_before);
  if (random_.Below(4) == 0) SendMessages();
  left_.Settle();
  const uint64_t faults = left_.Count(&Counters::client_fault_events) - faults_before;
  for (; log_read_ < left_.log.size(); ++log_read_) {
    // Without the number of the process, and of lines that were too many for the log.
    const std::string& said = left_.log[log_read_];
    ++figures_.ends[said.ends_with("left out") ? " more than is logged"
                                               : said.substr(said.rfind(':') + 1)];
  }
  if (HostileGone()) {
    ++figures_.sessions_ended;
    Require(faults != 0 || !written.exact, "the session ended and nothing says why");
    CheckMargins(*hostile_, "of the hostile program");
    BeginHostile();
  } else {
    Require(faults == 0, "a fault is counted and the session goes on");
    if (written.damaged) BeginHostile();
  }
  // The daemon's control side lives, too.
  Require(
      good_[0].client().Object(ROCEGW_MSG_QUERY_QP, good_qp_[0].reply().handle).header.error == 0 &&
          good_[0].client().error() == 0,
      "the gateway does not answer");
  if (figures_.batches % 64 == 0) {
    CheckMargins(victim_, "of the peer");
    CheckMargins(*hostile_, "of the hostile program");
  }
  if (figures_.batches % 512 == 0) {
    LookForLeaks();
    BeginHostile();
  }
}

void HostileWorld::LookForLeaks() {
  hostile_.reset();
  messenger_.reset();
  messenger_rings_.reset();
  unread_.Reset();
  std::vector<uint64_t> held;
  // Calls on what programs passed return on threads of their own, and connections end in steps.
  const auto deadline = std::chrono::steady_clock::now() + kGoneWithin;
  do {
    left_.Settle();
    held = Held();
  } while (held != held_at_first_ && std::chrono::steady_clock::now() < deadline);
  for (size_t i = 0; i < held.size(); ++i) {
    Require(held[i] == held_at_first_[i], "amount " + std::to_string(i) + " was " +
                                              std::to_string(held_at_first_[i]) + " and is " +
                                              std::to_string(held[i]));
  }
}

std::string HostileWorld::Counters() const {
  using Counters = metrics::WorkerCounters;
  const std::pair<const char*, uint64_t> counted[] = {
      {"wqe_bad", left_.Count(&Counters::wqe_bad_requests)},
      {"cqe_error", left_.Count(&Counters::cqe_error_entries)},
      {"memory_fault", left_.Count(&Counters::memory_fault_operations)},
      {"cq_overflow", left_.Count(&Counters::cq_overflow_events)},
      {"client_fault", left_.Count(&Counters::client_fault_events)},
      {"channel_rx", left_.Count(&Counters::channel_rx_packets)},
      {"nak_error_tx of the peer", right_.Count(&Counters::nak_error_tx_packets)},
      {"qp_error", left_.Count(&Counters::qp_error_events)}};
  std::string text;
  for (const auto& [name, value] : counted)
    text += "  " + std::string(name) + " " + std::to_string(value) + "\n";
  return text;
}

}  // namespace rocegw::testing
