// SPDX-License-Identifier: Apache-2.0
// What a donor and the agent of its host say to each other in files of one folder: the donor's
// announcement NAME.donor, and the agent's orders NAME.order. Also the question of a program for
// donors of the fleet, and its answer, on the agent's socket in that folder. All are short texts
// with a line for each value; unknown lines are ignored. Values; the functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/base/status.h"

namespace rocegw::far {

inline constexpr char kAnnouncementEnding[] = ".donor";
inline constexpr char kOrdersEnding[] = ".order";
inline constexpr char kAgentSocket[] = "agent.sock";
// Longest text of any of them.
inline constexpr size_t kMostText = 32 << 10;
inline constexpr size_t kMostTenants = 64;
// Quotas in orders: those of a donor's spec, and shares of tenants' limits.
inline constexpr size_t kMostQuotas = 320;
// Donors announce themselves at least this often, in seconds, and are gone after the other time.
inline constexpr int64_t kAnnounceSeconds = 2;
inline constexpr int64_t kGoneSeconds = 10;

using BytesByTenant = std::map<std::string, uint64_t>;

struct Announcement {
  std::string address;  // empty: all
  uint32_t port = 0;
  uint64_t donated_bytes = 0;
  uint64_t leased_bytes = 0;
  uint64_t leases = 0;
  uint64_t sessions = 0;
  BytesByTenant tenants;  // leased; those with the most if there are many
  bool draining = false;
  int64_t generation = 0;  // the orders that the donor follows have it
  int64_t shares = 0;      // and this revision of the shares
  std::string version;
  std::string pool;  // shared block pool that the donor belongs to; empty: none
  uint64_t block_bytes = 0;
};

struct DonorOrders {
  int64_t generation = 0;
  // Revision of the shares of tenants' limits over the whole fleet, which the quotas include.
  int64_t shares = 0;
  bool draining = false;
  BytesByTenant quotas;
  std::optional<uint64_t> tenant_bytes;  // quota of other tenants; nullopt: the donor's own
  bool operator==(const DonorOrders&) const = default;
};

struct DonorQuestion {
  std::string tenant;  // T of "tenants/T"
  uint64_t bytes = 0;
  uint32_t replicas = 1;
  uint32_t donors = 0;  // 0: the controller chooses
  // Shared block pool whose donors are wanted; empty: donors for a session. An agent that is older
  // names the latter.
  std::string pool = {};
};

// Donor as an answer names it.
struct NamedDonor {
  std::string address;
  uint32_t port = 0;
  std::string failure_domain;
  std::string name;  // "gateways/G/donors/D"
};

std::string ToText(const Announcement& announcement);
std::string ToText(const DonorOrders& orders);
std::string ToText(const DonorQuestion& question);
std::string ToText(const std::vector<NamedDonor>& answer);
// Text of an answer that is a refusal.
std::string RefusalText(std::string_view why);

// nullopt: another text, another version, an incomplete text, or a value that has no meaning.
std::optional<Announcement> ReadAnnouncement(std::string_view text);
std::optional<DonorOrders> ReadOrders(std::string_view text);
std::optional<DonorQuestion> ReadQuestion(std::string_view text);
// A refusal is ENOENT with its text. EPROTO: no answer.
StatusOr<std::vector<NamedDonor>> ReadAnswer(std::string_view text);

// Says what the controller would refuse in the announcement: the limits are those of
// fleet.v1.DonorReport. nullptr: nothing.
const char* ProblemOf(const Announcement& announcement);

// Whether a question or an answer is complete.
bool IsComplete(std::string_view text);
// Whether the text can be the name of a donor or of a block pool: a DNS label of at most 30
// characters.
bool IsDonorName(std::string_view text);

}  // namespace rocegw::far
