// SPDX-License-Identifier: Apache-2.0
// Forged management datagrams at the connection manager and at the discovery of gateways: a
// production engine takes them as a worker hands them over, behind ICRC and Q_Key.
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "gateway/wire/authentication.h"
#include "gateway/wire/gateway_mad.h"
#include "tests/bench/forge/attack.h"
#include "tests/unit/cm/cm_host.h"

namespace rocegw::bench {
namespace {

using cm::testing::Host;
using cm::testing::kPort;
using cm::testing::V4;
using testing::Random;

// Fields that the attacker knows.
enum Known : uint8_t { kAddress = 1, kOwnId = 2, kPeerId = 4, kQpn = 8, kGuid = 16 };

cm::CmConfig Discovering() {
  cm::CmConfig config;
  config.discovery.enabled = true;
  return config;
}

// Delivers a datagram to a host. Returns the number of its answers.
size_t Deliver(Host& to, const wire::Gid& from, const wire::MadBytes& bytes) {
  wire::RxMeta meta;
  meta.source = from;
  meta.destination = to.address;
  (void)to.engine().OnDatagram(bytes, meta, kGsiQpn, to.now, to.actions);
  const size_t answers = to.actions.mads.size();
  to.actions.mads.clear();
  return answers;
}

// The connection that is attacked: the client waits for a REP, the server waits for a RTU, or the
// server is connected.
enum class Stage : uint8_t { kRequested, kReplied, kEstablished };

class ConnectionVictim {
 public:
  ConnectionVictim(Stage stage, Random& random) : random_(random), stage_(stage) { Connect(); }

  // `make` sets the fields of a message that differ.
  template <typename Message, typename Make>
  Outcome Send(uint64_t count, uint8_t known, const Message& message, const Make& make) {
    Outcome outcome;
    wire::MadBytes bytes;
    for (; outcome.sent < count; ++outcome.sent) {
      Message forged = message;
      make(*this, known, forged);
      wire::EncodeMad({.transaction_id = random_.Bits(), .body = forged}, bytes);
      const bool spoofs = (known & kAddress) != 0;
      outcome.answered += Deliver(victim(), spoofs ? peer().address : AnyAddress(random_), bytes);
      if (victim().StateOf(id_) == state_) continue;
      outcome.Add(Change::kConnection);
      Connect();
    }
    return outcome;
  }

  uint32_t OwnId(uint8_t known) { return (known & kOwnId) != 0 ? own_id_ : Any32(); }
  uint32_t PeerId(uint8_t known) { return (known & kPeerId) != 0 ? peer_id_ : Any32(); }
  Qpn OwnQpn(uint8_t known) { return Qpn{(known & kQpn) != 0 ? qpn_[1] : Any24(random_)}; }
  uint32_t Any32() { return random_.Value<uint32_t>(); }
  uint64_t Any64() { return random_.Bits(); }
  // Returns the client's request as another one that the server has no listener for.
  wire::CmReq Request() const {
    wire::CmReq request = request_;
    request.service_id = wire::IpServiceId(0x0106, kPort + 1);
    return request;
  }

 private:
  Host& victim() { return stage_ == Stage::kRequested ? *client_ : *server_; }
  Host& peer() { return stage_ == Stage::kRequested ? *server_ : *client_; }

  // Moves the first datagram from one host to the other, and returns it.
  template <typename Message>
  Message Move(Host& from, Host& to) {
    if (from.actions.mads.empty()) std::abort();
    const cm::SendMad mad = from.actions.mads.front();
    from.actions.mads.clear();
    wire::CmMad decoded;
    if (wire::DecodeMad(mad.bytes, decoded) != metrics::DropReason::kNone) std::abort();
    (void)to.Take(mad);
    return std::get<Message>(decoded.body);
  }

  void Connect() {
    client_.emplace(V4(1), random_.Bits());
    server_.emplace(V4(2), random_.Bits());
    for (uint32_t& qpn : qpn_) qpn = static_cast<uint32_t>(random_.Between(0x100, 0xFFFF00));
    (void)server_->Listening(kPort);
    const cm::CmHandle active = client_->Routed(server_->address, kPort);
    if (client_->Do(active, cm::Connect{Host::Params(qpn_[0])}) != 0) std::abort();
    if (stage_ == Stage::kRequested) {
      wire::CmMad decoded;
      if (wire::DecodeMad(client_->actions.mads.at(0).bytes, decoded) != metrics::DropReason::kNone)
        std::abort();
      own_id_ = std::get<wire::CmReq>(decoded.body).local_comm_id;
      id_ = active;
    } else {
      request_ = Move<wire::CmReq>(*client_, *server_);
      peer_id_ = request_.local_comm_id;
      id_ = server_->NextEvent()->id;
      if (server_->Do(id_, cm::Accept{Host::Params(qpn_[1])}) != 0) std::abort();
      own_id_ = Move<wire::CmRep>(*server_, *client_).local_comm_id;
    }
    if (stage_ == Stage::kEstablished) {
      if (client_->Do(active, cm::Establish{}) != 0) std::abort();
      (void)Move<wire::CmRtu>(*client_, *server_);
    }
    client_->actions = {};
    server_->actions = {};
    state_ = victim().StateOf(id_);
    if (state_.empty()) std::abort();
  }

  Random& random_;
  const Stage stage_;
  std::optional<Host> client_;
  std::optional<Host> server_;
  uint32_t qpn_[2] = {};  // of client and server
  uint32_t own_id_ = 0;
  uint32_t peer_id_ = 0;
  wire::CmReq request_;
  cm::CmHandle id_;
  std::string_view state_;
};

template <typename Message, typename Make>
Attack MessagesOf(const char* packet, Stage stage, const char* knows, uint8_t known,
                  const Expected& expected, const Make& make) {
  return {"CM", packet, knows, expected, [=](uint64_t count, Random& random) {
            return ConnectionVictim(stage, random).Send(count, known, Message(), make);
          }};
}

struct Ids {
  template <typename Message>
  void operator()(ConnectionVictim& victim, uint8_t known, Message& message) const {
    message.local_comm_id = victim.PeerId(known);
    message.remote_comm_id = victim.OwnId(known);
  }
};
struct Disconnect {
  void operator()(ConnectionVictim& victim, uint8_t known, wire::CmDreq& message) const {
    Ids()(victim, known, message);
    message.remote_qpn = victim.OwnQpn(known);
  }
};
struct RejectReply {
  void operator()(ConnectionVictim& victim, uint8_t known, wire::CmRej& message) const {
    Ids()(victim, known, message);
    message.answered = wire::CmAnswered::kRep;
  }
};
struct Reply {
  void operator()(ConnectionVictim& victim, uint8_t known, wire::CmRep& message) const {
    Ids()(victim, known, message);
    message.local_qpn = Qpn{0x777};
    message.local_ca_guid = victim.Any64();
  }
};
struct StaleRequest {
  void operator()(ConnectionVictim& victim, uint8_t known, wire::CmReq& message) const {
    message = victim.Request();
    message.local_comm_id = victim.Any32();
    if ((known & kGuid) == 0) message.local_ca_guid = victim.Any64();
  }
};

// What the victim asked or learned of a peer.
class DiscoveryVictim {
 public:
  // `settled`: the peer has answered, else the question is open.
  DiscoveryVictim(bool settled, bool keys, Random& random)
      : random_(random), settled_(settled), keys_(keys) {
    Ask();
  }

  // Answers the open question.
  Outcome Answers(uint64_t count, bool knows_address, bool knows_transaction) {
    wire::GatewayMad answer;
    answer.response = true;
    return Send(count, [&] {
      answer.transaction_id = knows_transaction ? transaction_ : random_.Bits();
      return std::pair(knows_address ? V4(1) : AnyAddress(random_), answer);
    });
  }
  // Asks as another instance of the peer.
  Outcome Questions(uint64_t count) {
    wire::GatewayMad question;
    return Send(count, [&] {
      question.transaction_id = random_.Bits();
      return std::pair(V4(1), question);
    });
  }

 private:
  static cm::GatewaySettings Settings() {
    cm::GatewaySettings settings;
    settings.features = wire::kOptionChannel | wire::kOptionSelectiveAck | wire::kOptionCcDcqcn;
    settings.acceptors[0] = Qpn{0x44};
    return settings;
  }

  void Ask() {
    peer_.emplace(V4(1), random_.Bits(), Discovering());
    victim_.emplace(V4(2), random_.Bits(), Discovering());
    for (Host* host : {&*peer_, &*victim_}) {
      host->SetGateway(Settings());
      if (keys_) host->engine().SetKeys({.count = 1, .keys = {{{1, 2}}}});
    }
    (void)victim_->engine().ChooseDataPath(victim_->address, peer_->address, Qpn{0x111}, 0xFFFFFFFF,
                                           victim_->now, victim_->actions);
    wire::GatewayMad question;
    if (wire::DecodeGatewayMad(victim_->actions.mads.at(0).bytes, wire::kDefaultVendorId,
                               question) != metrics::DropReason::kNone)
      std::abort();
    transaction_ = question.transaction_id;
    if (settled_) cm::testing::Exchange(*victim_, *peer_);
    victim_->actions = {};
    kind_ = Kind();
    if (settled_ != (kind_ == cm::PeerKind::kGateway)) std::abort();
  }
  cm::PeerKind Kind() { return victim_->engine().discovery().KindOf(peer_->address); }

  template <typename Make>
  Outcome Send(uint64_t count, const Make& make) {
    Outcome outcome;
    wire::MadBytes bytes;
    for (; outcome.sent < count; ++outcome.sent) {
      auto [from, mad] = make();
      mad.info.instance = random_.Value<uint32_t>() | 1;
      mad.info.features = wire::kOptionPresent;
      wire::EncodeGatewayMad(mad, wire::kDefaultVendorId, bytes);
      // Slow enough for the limits of answers. An open question waits meanwhile.
      if (settled_) victim_->now = victim_->now + Milliseconds(100);
      outcome.answered += Deliver(*victim_, from, bytes);
      if (Kind() == kind_) continue;
      outcome.Add(Change::kPeer);
      Ask();
    }
    return outcome;
  }

  Random& random_;
  const bool settled_;
  const bool keys_;
  std::optional<Host> peer_;
  std::optional<Host> victim_;
  uint64_t transaction_ = 0;
  cm::PeerKind kind_ = cm::PeerKind::kUnknown;
};

Attack AnswersOf(const char* knows, bool address, bool transaction, double bits) {
  return {"discovery", "answer", knows, Expected{bits}, [=](uint64_t count, Random& random) {
            return DiscoveryVictim(false, false, random).Answers(count, address, transaction);
          }};
}

}  // namespace

std::vector<Attack> ConnectionAttacks() {
  constexpr uint8_t kAll = kAddress | kOwnId | kPeerId | kQpn | kGuid;
  const auto connected = Stage::kEstablished;
  return {
      MessagesOf<wire::CmDreq>("DREQ", connected, "address", kAddress, {88, 64}, Disconnect()),
      MessagesOf<wire::CmDreq>("DREQ", connected, "all but the address", kAll & ~kAddress, {32, 0},
                               Disconnect()),
      MessagesOf<wire::CmDreq>("DREQ", connected, "all but the victim's ID", kAll & ~kOwnId,
                               {32, 32}, Disconnect()),
      MessagesOf<wire::CmDreq>("DREQ", connected, "all but the peer's ID", kAll & ~kPeerId,
                               {32, 32}, Disconnect()),
      MessagesOf<wire::CmDreq>("DREQ", connected, "all but the QPN", kAll & ~kQpn, {24, 0},
                               Disconnect()),
      MessagesOf<wire::CmDreq>("DREQ", connected, "everything", kAll, {0, 0}, Disconnect()),
      MessagesOf<wire::CmRej>("REJ of a REP", connected, "address", kAddress, {64, 64},
                              RejectReply()),
      MessagesOf<wire::CmReq>("REQ of a stale queue pair", connected, "address, peer's QPN",
                              kAddress, {64, 0}, StaleRequest()),
      MessagesOf<wire::CmReq>("REQ of a stale queue pair", connected, "everything", kAll, {0, 0},
                              StaleRequest()),
      MessagesOf<wire::CmRtu>("RTU, one awaited", Stage::kReplied, "address", kAddress, {64, 64},
                              Ids()),
      MessagesOf<wire::CmRep>("REP, one awaited", Stage::kRequested, "address", kAddress, {32, 32},
                              Reply()),
      MessagesOf<wire::CmRej>("REJ, REP awaited", Stage::kRequested, "address", kAddress, {32, 32},
                              Ids()),
      MessagesOf<wire::CmRej>("REJ, REP awaited", Stage::kRequested, "everything", kAll, {0, 0},
                              Ids()),
      AnswersOf("address", true, false, 64),
      AnswersOf("all but the address", false, true, 32),
      AnswersOf("everything", true, true, 0),
      {"discovery", "question, other instance", "address", Expected{0},
       [](uint64_t count, Random& random) {
         return DiscoveryVictim(true, false, random).Questions(count);
       }},
      {"discovery", "the same, keys of the fleet", "address", Expected{kNever},
       [](uint64_t count, Random& random) {
         return DiscoveryVictim(true, true, random).Questions(count);
       }},
  };
}

}  // namespace rocegw::bench
