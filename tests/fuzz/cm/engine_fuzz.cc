// SPDX-License-Identifier: Apache-2.0
// The input is a script: commands of two programs, datagrams (made up, or sent ones given back and
// damaged) and time. Whatever the script, the engine must stay within its limits, keep its promises
// about events, and be empty once the programs are gone and time has passed.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "gateway/cm/cm_engine.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::cm {
namespace {

void Check(bool condition) {
  if (!condition) std::abort();
}

class CountingRandom : public RandomSource {
 public:
  uint64_t Next() override {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ ^ state_ >> 29;
  }

 private:
  uint64_t state_ = 1;
};

wire::Gid Address(uint8_t choice) {
  switch (choice % 6) {
    case 0:
    case 1:
      return wire::Gid::FromV4(0xC0000201);  // local
    case 2:
      return wire::Gid::FromV4(0xC0000202);  // local too
    case 3:
      return wire::Gid::FromV4(0xC0000209);
    case 4:
      return wire::Gid::FromV4(choice & 0x40 ? 0x7F000001 : 0);
    default:
      return {};
  }
}

class Script {
 public:
  // Every other length is a script of a gateway that looks for others.
  Script(const uint8_t* data, size_t size)
      : data_(data), size_(size), discovers_(size % 2 == 1), engine_(NewEngine()) {}

  void Run() {
    while (at_ < size_) Step();
    for (const uint32_t owner : {1u, 2u}) engine_->DropOwner({owner}, now_, actions_);
    Check(engine_->id_count() == 0 && engine_->port_count() == 0);
    actions_.Clear();
    for (int i = 0; i < 2000 && engine_->deadline() != kNever; ++i) {
      now_ = std::max(now_, engine_->deadline());
      engine_->OnDeadline(now_, actions_);
      Check(engine_->deadline() > now_);
      Check(actions_.events.empty());
      actions_.Clear();
    }
    Check(engine_->connection_count() == 0);
    Check(engine_->deadline() == kNever);
  }

 private:
  // After so many steps the engine is handed over to a fresh one, as if another gateway took over.
  static constexpr int kStepsOfEngine = 8;

  std::unique_ptr<CmEngine> NewEngine() {
    auto engine = std::make_unique<CmEngine>(Config(discovers_), random_);
    if (discovers_) {
      GatewaySettings settings;
      settings.features = wire::kOptionChannel | wire::kOptionSelectiveAck | wire::kOptionCcStatic;
      settings.acceptors[0] = Qpn{2};
      engine->SetGateway(settings);
    }
    LocalAddress local[2];
    local[0].gid = Address(0);
    local[1].gid = Address(2);
    engine->SetAddresses(local);
    return engine;
  }

  void HandOver() {
    std::vector<uint8_t> bytes;
    const hand_over::StateVersions versions;
    hand_over::StateStream out(bytes, now_, versions);
    CmActions reported;
    engine_->HandOver(out, reported);
    Check(out.ok());
    std::unique_ptr<CmEngine> fresh = NewEngine();
    hand_over::StateStream in(bytes, now_);
    fresh->HandOver(in, reported);
    Check(in.ok() && in.at_end());
    Check(fresh->deadline() == engine_->deadline());
    Check(fresh->id_count() == engine_->id_count());
    Check(fresh->connection_count() == engine_->connection_count());
    Check(fresh->port_count() == engine_->port_count());
    engine_ = std::move(fresh);
  }

  static CmConfig Config(bool discovers) {
    CmConfig config;
    config.discovery.enabled = discovers;
    config.discovery.max_peers = 2;
    config.discovery.answer_burst = 16;
    config.max_ids = 24;
    config.max_ids_per_owner = 16;
    config.max_answered_orphans = 5;
    config.max_ending_orphans = 3;
    config.last_ephemeral_port = static_cast<uint16_t>(config.first_ephemeral_port + 5);
    return config;
  }

  uint8_t Byte() { return at_ < size_ ? data_[at_++] : 0; }

  CmHandle Handle() {
    const uint8_t choice = Byte();
    if ((choice & 0x80) != 0 && !passive_.empty()) return passive_[choice % passive_.size()];
    return {1u + choice % 8};
  }

  Endpoint Where() {
    Endpoint endpoint;
    endpoint.address = Address(Byte());
    endpoint.port = static_cast<uint16_t>(7000 + Byte() % 3);
    if (Byte() % 4 == 0) endpoint.port = 0;
    return endpoint;
  }

  ConnectParams Params() {
    ConnectParams param;
    param.qpn = Qpn{Byte() % 16u};
    param.responder_resources = Byte();
    param.initiator_depth = Byte();
    param.retry_count = Byte();
    param.rnr_retry_count = Byte();
    param.private_data.length = Byte();
    return param;
  }

  void Command() {
    CmCommand command;
    command.owner = {1u + Byte() % 2u};
    command.id = Handle();
    switch (Byte() % 16) {
      case 0:
        command.body = CreateId{Byte() % 2 == 0 ? PortSpace::kTcp : PortSpace::kUdp,
                                static_cast<QpType>(2 + Byte() % 3)};
        break;
      case 1:
        command.body = DestroyId{};
        break;
      case 2:
        command.body = SetOption{static_cast<SetOption::Name>(Byte() % 4), Byte()};
        break;
      case 3:
        command.body = Bind{Where()};
        break;
      case 4: {
        ResolveAddress resolve;
        resolve.has_source = Byte() % 2 == 0;
        resolve.source = Where();
        resolve.destination = Where();
        resolve.timeout_ms = Byte();
        command.body = resolve;
        break;
      }
      case 5: {
        AddressResolved route;
        route.error = Byte() % 4 == 0 ? 113 : 0;
        route.source = Address(Byte());
        route.destination = Address(Byte());
        command.body = route;
        break;
      }
      case 6:
        command.body = ResolveRoute{};
        break;
      case 7:
        command.body = Listen{Byte() % 4u};
        break;
      case 8:
        command.body = Connect{Params()};
        break;
      case 9:
        command.body = Accept{Params()};
        break;
      case 10: {
        Reject reject;
        reject.private_data.length = Byte();
        command.body = reject;
        break;
      }
      case 11:
        command.body = Establish{};
        break;
      case 12:
        command.body = Disconnect{};
        break;
      case 13:
        command.body = CommEstablished{};
        break;
      case 14:
        command.body = QpFailed{};
        break;
      default:
        command.body = RequestFetched{};
        break;
    }
    engine_->OnCommand(command, now_, actions_);
    QpAttributes attributes;
    IdInfo info;
    (void)engine_->QueryId(command.owner, command.id, info);
    (void)engine_->InitQpAttributes(command.owner, command.id, static_cast<QpState>(1 + Byte() % 3),
                                    attributes);
  }

  void Datagram(const wire::MadBytes& bytes, const wire::Gid& source,
                const wire::Gid& destination) {
    wire::RxMeta meta;
    meta.source = source;
    meta.destination = destination;
    (void)engine_->OnDatagram(bytes, meta, kGsiQpn, now_, actions_);
  }

  // Random content with a proper header.
  void MadeUp() {
    wire::MadBytes bytes{};
    bytes[0] = 1;
    bytes[1] = wire::kMadClassCm;
    bytes[2] = 2;
    bytes[3] = 3;
    bytes[17] = static_cast<uint8_t>(0x10 + Byte() % 12);
    if (bytes[17] == 0x1B) {
      wire::GatewayMad mad;
      mad.response = Byte() % 2 == 0;
      mad.transaction_id = Byte();
      mad.info.instance = 1u + Byte() % 3;
      mad.info.features = wire::kOptionPresent;
      wire::EncodeGatewayMad(mad, wire::kDefaultVendorId - Byte() / 128, bytes);
    }
    const wire::Gid source = Address(Byte());
    const wire::Gid destination = Address(Byte());
    const size_t count = Byte();
    for (size_t i = 0; i < count && wire::kMadHeaderLength + i < bytes.size(); ++i) {
      bytes[wire::kMadHeaderLength + i] = Byte();
    }
    Datagram(bytes, source, destination);
  }

  // One that the engine sent arrives, perhaps damaged, perhaps for the second time.
  void Sent() {
    if (sent_.empty()) return;
    SendMad mad = sent_[Byte() % sent_.size()];
    const uint8_t damage = Byte();
    if (damage % 4 == 0) mad.bytes[Byte()] ^= static_cast<uint8_t>(1u << (damage >> 5));
    Datagram(mad.bytes, mad.path.source, mad.path.destination);
  }

  void UsePeers() {
    const wire::Gid source = Address(Byte());
    const wire::Gid peer = Address(Byte());
    const Qpn destination{Byte() % 16u};
    if (Byte() % 4 == 0) engine_->ForgetPeer(peer, actions_);
    const DataPath path =
        engine_->ChooseDataPath(source, peer, destination, UINT32_MAX, now_, actions_);
    Check(path.reason != nullptr && path.reason[0] != '\0');
    Check(!path.wait || (!path.channel && engine_->deadline() != kNever));
    Check(!path.channel || (path.channel->peer == peer && path.channel->acceptor != kInvalidQpn));
    Check(engine_->discovery().size() <= 2);
  }

  void Step() {
    if (++steps_ % kStepsOfEngine == 0) HandOver();
    const int step = Byte() % 8;
    switch (step) {
      case 0:
        now_ = now_ + Milliseconds(Byte() * 16);
        engine_->OnDeadline(now_, actions_);
        break;
      case 1:
        if (engine_->deadline() != kNever) now_ = std::max(now_, engine_->deadline());
        engine_->OnDeadline(now_, actions_);
        Check(engine_->deadline() > now_);
        break;
      case 2:
        MadeUp();
        break;
      case 3:
      case 4:
        Sent();
        break;
      default:
        step == 7 && discovers_ ? UsePeers() : Command();
        break;
    }
    for (const SendMad& mad : actions_.mads) {
      wire::CmMad decoded;
      Check(wire::IsVendorMad(mad.bytes) ||
            wire::DecodeMad(mad.bytes, decoded) == metrics::DropReason::kNone);
      sent_.push_back(mad);
    }
    if (sent_.size() > 64) sent_.erase(sent_.begin(), sent_.end() - 32);
    for (const CmEvent& event : actions_.events) {
      if (event.type != EventType::kConnectRequest) continue;
      Check((event.id.value & kEngineHandleBit) != 0 && event.listener.value != 0);
      passive_.push_back(event.id);
    }
    actions_.Clear();
    Check(engine_->id_count() <= 24 && engine_->connection_count() <= 32);
    for (const ConnectionRow& row : engine_->Connections()) Check(!Describe(row).empty());
  }

  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
  const bool discovers_;
  CountingRandom random_;
  std::unique_ptr<CmEngine> engine_;
  int steps_ = 0;
  TimePoint now_{1000000000};
  CmActions actions_;
  std::vector<SendMad> sent_;
  std::vector<CmHandle> passive_;
};

}  // namespace
}  // namespace rocegw::cm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  rocegw::cm::Script(data, size).Run();
  return 0;
}
