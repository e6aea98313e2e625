// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hand_over/handed_objects.h"

#include <algorithm>
#include <memory>

#include "gateway/channel/staged_carrier.h"
#include "gateway/flow/carrier_names.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/take_over/gateway_state.h"
#include "gateway/transport/endpoint/endpoint_tombstone.h"
#include "tests/support/channel/channel_pair.h"
#include "tests/support/hand_over/handed_connections.h"
#include "tests/support/hand_over/handed_sessions.h"
#include "tests/support/hand_over/handed_worker.h"
#include "tests/support/qp/qp_host.h"

namespace rocegw::testing {
namespace {

using hand_over::StateStream;
using verbs::QpType;

constexpr TimePoint kNow{1'000'000'000};
constexpr uint32_t kMemory = 1 << 16;

// Names of the channels that queue pairs may use. State from outside names any number.
class FewChannels final : public flow::CarrierNames {
 public:
  FewChannels() {
    for (const uint8_t traffic_class : {0, 8}) {
      channel::Channel* const channel = pair_.a().Reach(pair_.b(), pair_.now, traffic_class);
      pair_.a().Hold(channel);
      channels_.push_back(channel);
    }
    pair_.Settle();
  }
  uint64_t NameOf(const flow::Carrier& carrier) override {
    return &carrier == channels_[0] ? 1 : 2;
  }
  flow::Carrier* Find(uint64_t name) override {
    return name == 1 || name == 2 ? channels_[name - 1] : nullptr;
  }

 private:
  ChannelPair pair_;
  std::vector<channel::Channel*> channels_;
};

template <typename F>
std::vector<uint8_t> Written(F hand_over) {
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  StateStream out(bytes, kNow, versions);
  hand_over(out);
  EXPECT_TRUE(out.ok()) << out.failure();
  return bytes;
}

// Returns the reason for which the state was refused; "": it was read.
template <typename F>
std::string Read(std::span<const uint8_t> state, F hand_over) {
  StateStream in(state, kNow);
  hand_over(in);
  if (!in.ok()) return in.failure();
  return in.at_end() ? "" : "state is longer than what was read";
}

QpType TypeOf(HandedObject object) {
  switch (object) {
    case HandedObject::kUc:
      return QpType::kUc;
    case HandedObject::kUd:
      return QpType::kUd;
    case HandedObject::kEndpoint:
      return QpType::kEndpoint;
    default:
      return QpType::kRc;
  }
}

QpHost::Options OptionsOf(HandedObject object, uint32_t side, const verbs::GidTable& gids) {
  QpHost::Options options;
  options.qpn = 0x11 + side;
  options.type = TypeOf(object);
  options.gids = &gids;
  options.gid = gids.entries[0];
  options.memory_bytes = kMemory;
  options.sq_entries = options.rq_entries = 8;
  options.cq_entries = 32;
  options.payload_stride = 64;
  return options;
}

// Two queue pairs, connected if their type is.
struct TwoEnds {
  explicit TwoEnds(HandedObject object) {
    for (uint32_t side = 0; side < 2; ++side) {
      gids[side].entries[0] = wire::Gid::FromV4(0xC0000201 + side);
      ends[side] = std::make_unique<QpHost>(OptionsOf(object, side, gids[side]));
    }
  }
  verbs::GidTable gids[2];
  std::unique_ptr<QpHost> ends[2];
};

std::vector<uint8_t> ExampleOfQueuePair(HandedObject object) {
  TwoEnds two(object);
  QpHost& own = *two.ends[0];
  QpHost& peer = *two.ends[1];
  const QpHost::Sge some{0, 3000};
  if (object == HandedObject::kRc) {
    QpHost::Connect(own, peer, 3, 100, 200);
    for (int i = 0; i < 4; ++i) {
      own.PostReceive(1, {some});
      rocegw_send_wqe read{};
      read.opcode = i == 3 ? ROCEGW_WR_RDMA_READ : ROCEGW_WR_SEND;
      read.u.rdma.remote_address = QpHost::kBase;
      read.u.rdma.rkey = peer.key();
      own.PostSend(read, {some});
      peer.PostSend(rocegw_send_wqe{.opcode = ROCEGW_WR_SEND}, {some});
    }
    own.Pump(kNow);
    own.Settle();
    peer.Pump(kNow);
    peer.Settle();
    // The first half of what the peer has sent.
    for (size_t left = peer.sent.size() / 2; left != 0; --left) {
      own.Deliver(peer.sent.front(), kNow);
      peer.sent.pop_front();
    }
    own.Settle();
  }
  FewChannels channels;
  return Written([&](StateStream& out) { own.qp().HandOver(out, channels); });
}

std::string RunQueuePair(HandedObject object, std::span<const uint8_t> state) {
  FewChannels channels;
  TwoEnds two(object);
  QpHost& own = *two.ends[0];
  const std::string failure =
      Read(state, [&](StateStream& in) { own.qp().HandOver(in, channels); });
  if (!failure.empty()) return failure;
  TimePoint now = kNow;
  for (int i = 0; i < 24; ++i) {
    // Messages have up to 2 GiB, and a damaged window may be as large.
    own.port_budget = 64;
    own.Deadline(now);
    own.Pump(now);
    own.Settle();
    own.sent.clear();
    own.Poll();
    now = now + Microseconds(int64_t{1} << i);
  }
  (void)own.ToState(verbs::QpState::kError);
  own.Pump(now);
  own.Settle();
  (void)own.ToState(verbs::QpState::kReset);
  return "";
}

std::vector<uint8_t> ExampleOfChannels() {
  ChannelPair pair;
  channel::Channel* const channel = pair.Open();
  pair.b().Hold(pair.b().Reach(pair.a(), pair.now, 8));
  pair.Settle();
  const auto send = [&](uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      pair.a().Send(*channel, first + i, pair.now, i % 4, i % 2, 1000);
  };
  // A lost frame, frames in flight, and queue pairs in the wait queue.
  send(1, 20);
  uint32_t frame = 0;
  pair.Settle([&](const ChannelPacket&) { return ++frame == 3; });
  send(100, 200);
  pair.a().Turn(pair.now);
  return pair.a().Written(kNow);
}

std::string RunChannels(std::span<const uint8_t> state) {
  ChannelPair pair;
  if (const char* const failure = pair.a().TakeOver(state, kNow); failure != nullptr)
    return failure;
  pair.Advance(Milliseconds(50));
  pair.Advance(Seconds(10));
  return "";
}

// A staged carrier on an open channel.
struct StagedWorld {
  static constexpr WorkerObject kMember{WorkerObject::Kind::kStagedCarrier, {0, 0}};

  StagedWorld() { session.busy = &busy; }
  ~StagedWorld() {
    // As a worker does: what has left is acknowledged or lost with its channel.
    staged.OnSessionGone();
    staged.OnChannelGone();
  }
  void Leave(TimePoint now) {
    if (staged.Next() == nullptr) return;
    if (staged.NextIsEmpty()) return staged.DropNext();
    uint8_t bytes[wire::kMaxPayload + 256];
    port::TxPacket packet{.data = bytes};
    if (staged.MayLeave(now)) staged.Leave(packet, now);
  }

  ChannelPair pair;
  channel::Channel* channel = pair.Open();
  std::vector<channel::StagedCarrier*> busy;
  channel::StagedOfSession session;
  channel::StagedCarrier staged{*channel, {kMember, 3}, 0, session};
};

std::vector<uint8_t> ExampleOfStagedCarrier() {
  StagedWorld world;
  for (uint32_t message = 1; message <= 4; ++message) {
    const flow::FrameRef ref{.owner = SlotHandle{7, 1}, .message = message, .length = 100};
    channel::StagedFrame& frame = world.staged.NewFrame(ref.length);
    flow::WaitEntry entry;
    world.staged.OnSent({SlotHandle{7, 1}, 3}, entry, ref, ref.length, kNow);
    frame.length = wire::kBthLength + 30 + ref.length;
    std::fill(frame.data, frame.data + frame.length, static_cast<uint8_t>(message));
    world.staged.OnReady(frame);
    if (message == 2) world.Leave(kNow);
  }
  return Written([&](StateStream& out) { world.staged.HandOver(out); });
}

std::string RunStagedCarrier(std::span<const uint8_t> state) {
  StagedWorld world;
  std::string failure = Read(state, [&](StateStream& in) { world.staged.HandOver(in); });
  for (int i = 0; failure.empty() && i < 100; ++i) {
    world.Leave(kNow);
    world.pair.Settle();
    world.staged.Forget();
    if (world.staged.HasTurn(0)) world.staged.NextTurn();
  }
  return failure;
}

constexpr SessionId kWindowSession{3};

// A memory window of type 2 and its region.
struct WindowWorld {
  static constexpr verbs::RemoteUser kUser{kWindowSession, 1, Qpn{0x11}, {4, 5}};

  static verbs::BindRequest Request() {
    verbs::BindRequest request;
    request.before = MemoryKey{0x12345600};
    request.key = MemoryKey{0x12345678};
    request.region = MemoryKey{0x77};
    request.access = verbs::kAccessRemoteRead;
    request.address = 0x1100;
    request.length = 0x200;
    return request;
  }
  WindowWorld() {
    region.key = MemoryKey{0x77};
    region.session = kWindowSession;
    region.pd = 1;
    region.iova = region.address = 0x1000;
    region.length = 0x1000;
    region.windows = &bound;
  }
  void HandOver(StateStream& state) {
    window.HandOver(state, [&](MemoryKey key) { return key == region.key ? &region : nullptr; });
  }

  verbs::BoundWindows bound;
  verbs::RegionConfig region;
  verbs::MemoryWindow window{verbs::MwType::kType2, kWindowSession, 1, MemoryKey{0x12345600}};
};

}  // namespace

std::string_view NameOf(HandedObject object) {
  switch (object) {
    case HandedObject::kVersions:
      return "versions";
    case HandedObject::kChannels:
      return "channels";
    case HandedObject::kRc:
      return "rc";
    case HandedObject::kUc:
      return "uc";
    case HandedObject::kUd:
      return "ud";
    case HandedObject::kEndpoint:
      return "endpoint";
    case HandedObject::kSharedReceives:
      return "shared_receives";
    case HandedObject::kTombstone:
      return "tombstone";
    case HandedObject::kGateway:
      return "gateway";
    case HandedObject::kStagedCarrier:
      return "staged_carrier";
    case HandedObject::kWorker:
      return "worker";
    case HandedObject::kSessions:
      return "sessions";
    case HandedObject::kFoundation:
      return "foundation";
    case HandedObject::kConnections:
      return "connections";
    case HandedObject::kMemoryWindow:
      return "memory_window";
    case HandedObject::kCount:
      break;
  }
  return "";
}

std::vector<uint8_t> ExampleOf(HandedObject object) {
  switch (object) {
    case HandedObject::kVersions:
      return Written([](StateStream& out) { hand_over::StateVersions().HandOver(out); });
    case HandedObject::kChannels:
      return ExampleOfChannels();
    case HandedObject::kSharedReceives: {
      SharedEnd end({});
      for (uint64_t i = 0; i < 4; ++i) end.PostReceive(i, {{QpHost::kBase, 64, 1}});
      transport::SharedReceives receives(end.Srq());
      for (int i = 0; i < 2 && receives.Check() == shm::WorkQueue::Look::kReady; ++i)
        receives.GiveBack(receives.Fetch());
      return Written([&](StateStream& out) { receives.HandOver(out); });
    }
    case HandedObject::kTombstone: {
      transport::EndpointTombstone tombstone({1, 2}, 3, Qpn{0x11}, Qpn{0x12}, 4);
      tombstone.Keep(7, {Qpn{0x21}, Qpn{0x11}, 8, 9});
      return Written([&](StateStream& out) { tombstone.HandOver(out); });
    }
    case HandedObject::kGateway: {
      take_over::GatewayState gateway;
      gateway.quiet_since_ns = kNow.ns;
      gateway.drains_locally = true;
      gateway.history.Add(Milliseconds(14), 7, "0.1.0", kNow.ns);
      gateway.history.AddRefusal(take_over::Refusal::kSessions);
      gateway.counts = {{"port a worker 0 tx_bytes", 77}, {"port a worker 0 tx_packets", 1}};
      return Written([&](StateStream& out) { gateway.HandOver(out); });
    }
    case HandedObject::kStagedCarrier:
      return ExampleOfStagedCarrier();
    case HandedObject::kWorker:
      return ExampleOfWorker();
    case HandedObject::kSessions:
      return ExampleOfSessions();
    case HandedObject::kFoundation:
      return ExampleOfFoundation();
    case HandedObject::kConnections:
      return ExampleOfConnections();
    case HandedObject::kMemoryWindow: {
      WindowWorld world;
      EXPECT_TRUE(world.window.Bind(WindowWorld::kUser, WindowWorld::Request(), &world.region));
      return Written([&](StateStream& out) { world.HandOver(out); });
    }
    default:
      return ExampleOfQueuePair(object);
  }
}

std::string ReadAndRun(HandedObject object, std::span<const uint8_t> state) {
  switch (object) {
    case HandedObject::kVersions:
      return Read(state, [](StateStream& in) { hand_over::StateVersions().HandOver(in); });
    case HandedObject::kChannels:
      return RunChannels(state);
    case HandedObject::kSharedReceives: {
      SharedEnd end({});
      transport::SharedReceives receives(end.Srq());
      std::string failure = Read(state, [&](StateStream& in) { receives.HandOver(in); });
      for (int i = 0; failure.empty() && i < 20; ++i) {
        if (receives.Check() != shm::WorkQueue::Look::kReady) break;
        (void)receives.Slot()[0];
        receives.Fetch();
      }
      return failure;
    }
    case HandedObject::kTombstone: {
      transport::EndpointTombstone tombstone({}, 0, {}, {}, 0);
      std::string failure = Read(state, [&](StateStream& in) { tombstone.HandOver(in); });
      wire::ChannelFrame frame;
      (void)tombstone.Answer({.owner = tombstone.handle(), .message = 7}, frame);
      return failure;
    }
    case HandedObject::kGateway: {
      take_over::GatewayState gateway;
      std::string failure = Read(state, [&](StateStream& in) { gateway.HandOver(in); });
      gateway.history.Add(Milliseconds(1), 1, "0.2.0", kNow.ns);
      return failure;
    }
    case HandedObject::kStagedCarrier:
      return RunStagedCarrier(state);
    case HandedObject::kWorker:
      return RunWorker(state);
    case HandedObject::kSessions:
      return RunSessions(state);
    case HandedObject::kFoundation:
      return RunFoundation(state);
    case HandedObject::kConnections:
      return RunConnections(state);
    case HandedObject::kMemoryWindow: {
      WindowWorld world;
      std::string failure = Read(state, [&](StateStream& in) { world.HandOver(in); });
      verbs::MemoryWindow::Place place;
      const auto bound = world.window.binding();
      // A place that the window grants lies in the region.
      if (bound.has_value() &&
          world.window.Find({kWindowSession, 1, bound->qpn, {4, 5}}, bound->key, 0, bound->address,
                            bound->length, place)) {
        EXPECT_TRUE(world.region.Holds(place.address, bound->length));
      }
      (void)world.window.Invalidate(WindowWorld::kUser, MemoryKey{0x12345678});
      return failure;
    }
    default:
      return RunQueuePair(object, state);
  }
}

}  // namespace rocegw::testing
