// SPDX-License-Identifier: Apache-2.0
// Limits and timeouts of the connection manager. A timeout in IBTA's 5-bit code is 4.096 us *
// 2^code. The defaults are the values that Linux sends, except for the faster first resends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gateway/base/ids.h"
#include "gateway/base/secret_sequence.h"
#include "gateway/base/time.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::cm {

// Source of unpredictable numbers: communication IDs, PSNs, transaction IDs, ports.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual uint64_t Next() = 0;
};

// Returns a key for a keyed hash.
inline SecretKey DrawKey(RandomSource& random) {
  const uint64_t first = random.Next();
  return {first, random.Next()};
}

// Settings of the search for gateways (discovery.h).
struct DiscoveryConfig {
  bool enabled = false;  // false: every peer counts as an RDMA device and gets no vendor MAD
  uint32_t vendor_id =
      wire::kDefaultVendorId;     // vendor ID of the MADs and of our options in CM messages
  Duration trust = Seconds(600);  // how long a result is valid
  // Pause before a silent address is asked again, since silence may be packet loss. For a gateway
  // it is constant; for another address it doubles each time, up to `trust`.
  Duration away_rest = Seconds(10);
  Duration hint_rest = Seconds(1);  // the pause if an RDMA device behaved like a gateway afterwards
  // Interval after which a query is repeated: once after it and once after twice as long.
  Duration resend_after = Milliseconds(5);
  Duration give_up = Milliseconds(20);
  uint8_t most_queries = 3;
  // The same for a member of the fleet: it is probably a gateway and only the answer was lost.
  Duration member_give_up = Milliseconds(100);
  uint8_t member_most_queries = 6;
  size_t max_peers = 4096;
  // Limit of answers to strangers in total: rate per second, and burst.
  uint32_t answer_rate = 2000;
  uint32_t answer_burst = 512;
  // The same limit per address. It is the only one for members of the fleet.
  uint32_t source_answer_rate = 50;
  uint32_t source_answer_burst = 64;
};

// Properties that this gateway offers to others.
struct GatewaySettings {
  uint8_t workers = 1;
  uint32_t features = 0;  // wire::GatewayOption bits
  uint32_t window = 0;    // bytes that one worker accepts ahead
  // Acceptor QPN per worker; needed for channels.
  std::array<Qpn, wire::kMostGatewayWorkers> acceptors{};
};

// Limits of one program's unanswered REQs to one listener (request_window.h).
struct RequestWindowConfig {
  uint32_t first = 256;
  uint32_t least = 16;
  uint32_t most = 512;  // half of the backlog that Linux gives a listener by default
  Duration interval = Milliseconds(200);
};

struct CmConfig {
  uint8_t max_depth = 16;         // limit of outstanding READs and atomics, offered and requested
  uint8_t target_ack_delay = 15;  // code; sent in the REP
  uint8_t packet_lifetime = 16;   // code; assumed for a path
  uint8_t response_timeout = 20;  // code; both CM response timeouts of a REQ
  uint8_t mra_service_timeout = 24;  // code; how long a program may take to decide about a request
  uint8_t max_cm_retries = 15;

  Duration first_resend =
      Milliseconds(200);  // doubles up to the interval that the timeouts above require
  Duration orphan_give_up = Seconds(20);  // for a DREQ whose program has exited
  Duration answer_memory =
      Seconds(30);  // how long a refused REQ or answered SIDR_REQ is kept to answer repetitions
  Duration longest_timewait = Seconds(60);
  Duration longest_mra = Seconds(300);  // longest delay that a peer may request with an MRA

  // How long a request waits for a listener that does not exist yet (early_requests.h). A REQ of
  // ours that a peer refuses for this reason is repeated at the shorter interval.
  Duration listener_grace = Milliseconds(100);
  Duration early_retry = Milliseconds(5);
  size_t max_early_requests = 256;

  uint16_t first_ephemeral_port = 32768;
  uint16_t last_ephemeral_port = 60999;

  size_t max_ids = 65536;
  size_t max_ids_per_owner = 16384;
  // Limits of connections whose id was destroyed (orphans.h); an id has at most one connection.
  // An answered one is kept for repetitions: of a refused or answered request, or in timewait. One
  // that ends still tells its peer, so a program's end may make as many as the program had ids.
  size_t max_answered_orphans = 16384;
  size_t max_ending_orphans = 65536;
  uint32_t max_backlog = 1024;

  DiscoveryConfig discovery;
  RequestWindowConfig request_window;

  // Limit of answers to messages without a connection: rate per second, and burst.
  uint32_t unsolicited_rate = 2000;
  uint32_t unsolicited_burst = 512;
  // The same limit per source address.
  uint32_t source_unsolicited_rate = 500;
  uint32_t source_unsolicited_burst = 128;
};

}  // namespace rocegw::cm
