// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/fleet/announcement.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

namespace rocegw::far {
namespace {

constexpr std::string_view kAnnouncementHead = "rocegw-donor 1";
constexpr std::string_view kOrdersHead = "rocegw-donor-orders 1";
constexpr std::string_view kQuestionHead = "rocegw-donor-question 1";
constexpr std::string_view kAnswerHead = "rocegw-donor-answer 1";
constexpr std::string_view kRefusalHead = "rocegw-donor-refusal 1";
constexpr std::string_view kEnd = "end\n";
constexpr size_t kLongestWord = 128;
constexpr size_t kMostDonors = 64;
// Limits of fleet.v1.DonorReport.
constexpr size_t kLongestAddress = 45;
constexpr size_t kLongestTenant = 31;
constexpr uint64_t kMostBytes = uint64_t{1} << 50;
constexpr uint64_t kMostBlockBytes = 16 << 20;
constexpr uint64_t kMostCount = 1 << 20;

bool IsAddress(const std::string& text) {
  in6_addr address{};
  return text.size() <= kLongestAddress && (inet_pton(AF_INET, text.c_str(), &address) == 1 ||
                                            inet_pton(AF_INET6, text.c_str(), &address) == 1);
}

// A message takes no other text; the controller shows it to people.
bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::string Line(std::string_view key, std::string_view value) {
  return std::string(key) + " " + std::string(value) + "\n";
}

std::string Line(std::string_view key, uint64_t value) { return Line(key, std::to_string(value)); }

std::string Begin(std::string_view head) { return std::string(head) + "\n"; }

// Lines of a text between its head and its end, as words.
class Lines {
 public:
  Lines(std::string_view text, std::string_view head) : rest_(text) {
    good_ = text.size() <= kMostText && text.ends_with(kEnd) && NextLine() == head;
  }

  // Returns the words of the next line; none at the end.
  std::vector<std::string_view> Next() {
    std::vector<std::string_view> words;
    std::string_view line = NextLine();
    if (line == "end") return words;
    for (;;) {
      const size_t space = line.find(' ');
      words.push_back(line.substr(0, space));
      if (space == std::string_view::npos) return words;
      line.remove_prefix(space + 1);
    }
  }
  // Reads a number; remembers if it is none.
  template <typename Number>
  void Read(std::string_view word, Number& out) {
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, out);
    good_ = good_ && error == std::errc() && stop == end;
  }
  void Read(std::string_view word, std::string& out) {
    good_ = good_ && word.size() <= kLongestWord;
    out = word;
  }
  void Read(std::string_view word, bool& out) {
    good_ = good_ && (word == "0" || word == "1");
    out = word == "1";
  }
  void ReadTenant(const std::vector<std::string_view>& words, size_t most, BytesByTenant& tenants) {
    if (words.size() != 3 || tenants.size() == most) return Fail();
    std::string tenant;
    Read(words[1], tenant);
    Read(words[2], tenants[tenant]);
  }
  void Fail() { good_ = false; }
  bool good() const { return good_; }

 private:
  std::string_view NextLine() {
    const size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    return end == std::string_view::npos ? "end" : line;
  }

  std::string_view rest_;
  bool good_ = false;
};

// Calls for each line with a key and one value, or with more; the reader looks at the key.
template <typename Value, typename Take>
std::optional<Value> ReadText(std::string_view text, std::string_view head, const Take& take) {
  Lines lines(text, head);
  Value value;
  while (lines.good()) {
    const std::vector<std::string_view> words = lines.Next();
    if (words.empty()) return value;
    if (words.size() >= 2) take(lines, words, value);
  }
  return std::nullopt;
}

}  // namespace

std::string ToText(const Announcement& announcement) {
  std::string text = Begin(kAnnouncementHead);
  if (!announcement.address.empty()) text += Line("address", announcement.address);
  text += Line("port", announcement.port) + Line("donated", announcement.donated_bytes) +
          Line("leased", announcement.leased_bytes) + Line("leases", announcement.leases) +
          Line("sessions", announcement.sessions) +
          Line("draining", announcement.draining ? "1" : "0") +
          Line("generation", static_cast<uint64_t>(announcement.generation)) +
          Line("shares", static_cast<uint64_t>(announcement.shares));
  if (!announcement.version.empty()) text += Line("version", announcement.version);
  if (!announcement.pool.empty())
    text += Line("pool", announcement.pool) + Line("block", announcement.block_bytes);
  std::vector<std::pair<uint64_t, std::string>> tenants;
  for (const auto& [tenant, bytes] : announcement.tenants) tenants.emplace_back(bytes, tenant);
  std::sort(tenants.rbegin(), tenants.rend());
  tenants.resize(std::min(tenants.size(), kMostTenants));
  for (const auto& [bytes, tenant] : tenants)
    text += Line("tenant", tenant + " " + std::to_string(bytes));
  return text + std::string(kEnd);
}

std::string ToText(const DonorOrders& orders) {
  std::string text = Begin(kOrdersHead) +
                     Line("generation", static_cast<uint64_t>(orders.generation)) +
                     Line("shares", static_cast<uint64_t>(orders.shares)) +
                     Line("draining", orders.draining ? "1" : "0");
  if (orders.tenant_bytes) text += Line("tenant-bytes", *orders.tenant_bytes);
  for (const auto& [tenant, bytes] : orders.quotas)
    text += Line("quota", tenant + " " + std::to_string(bytes));
  return text + std::string(kEnd);
}

std::string ToText(const DonorQuestion& question) {
  return Begin(kQuestionHead) + Line("tenant", question.tenant) + Line("bytes", question.bytes) +
         Line("replicas", question.replicas) + Line("donors", question.donors) +
         (question.pool.empty() ? "" : Line("pool", question.pool)) + std::string(kEnd);
}

std::string ToText(const std::vector<NamedDonor>& answer) {
  std::string text = Begin(kAnswerHead);
  for (const NamedDonor& donor : answer) {
    text += Line("donor", donor.address + " " + std::to_string(donor.port) + " " +
                              donor.failure_domain + " " + donor.name);
  }
  return text + std::string(kEnd);
}

std::string RefusalText(std::string_view why) {
  std::string line(why.substr(0, kMostText / 2));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return Begin(kRefusalHead) + Line("why", line) + std::string(kEnd);
}

std::optional<Announcement> ReadAnnouncement(std::string_view text) {
  const auto take = [](Lines& lines, const auto& words, Announcement& out) {
    const std::string_view key = words[0];
    if (key == "address") lines.Read(words[1], out.address);
    if (key == "port") lines.Read(words[1], out.port);
    if (key == "donated") lines.Read(words[1], out.donated_bytes);
    if (key == "leased") lines.Read(words[1], out.leased_bytes);
    if (key == "leases") lines.Read(words[1], out.leases);
    if (key == "sessions") lines.Read(words[1], out.sessions);
    if (key == "draining") lines.Read(words[1], out.draining);
    if (key == "generation") lines.Read(words[1], out.generation);
    if (key == "shares") lines.Read(words[1], out.shares);
    if (key == "version") lines.Read(words[1], out.version);
    if (key == "pool") lines.Read(words[1], out.pool);
    if (key == "block") lines.Read(words[1], out.block_bytes);
    if (key == "tenant") lines.ReadTenant(words, kMostTenants, out.tenants);
  };
  auto read = ReadText<Announcement>(text, kAnnouncementHead, take);
  if (read && (read->port == 0 || read->port > UINT16_MAX)) read.reset();
  return read;
}

std::optional<DonorOrders> ReadOrders(std::string_view text) {
  const auto take = [](Lines& lines, const auto& words, DonorOrders& out) {
    const std::string_view key = words[0];
    if (key == "generation") lines.Read(words[1], out.generation);
    if (key == "shares") lines.Read(words[1], out.shares);
    if (key == "draining") lines.Read(words[1], out.draining);
    if (key == "tenant-bytes") lines.Read(words[1], out.tenant_bytes.emplace());
    if (key == "quota") lines.ReadTenant(words, kMostQuotas, out.quotas);
  };
  return ReadText<DonorOrders>(text, kOrdersHead, take);
}

std::optional<DonorQuestion> ReadQuestion(std::string_view text) {
  const auto take = [](Lines& lines, const auto& words, DonorQuestion& out) {
    const std::string_view key = words[0];
    if (key == "tenant") lines.Read(words[1], out.tenant);
    if (key == "bytes") lines.Read(words[1], out.bytes);
    if (key == "replicas") lines.Read(words[1], out.replicas);
    if (key == "donors") lines.Read(words[1], out.donors);
    if (key == "pool") lines.Read(words[1], out.pool);
  };
  return ReadText<DonorQuestion>(text, kQuestionHead, take);
}

StatusOr<std::vector<NamedDonor>> ReadAnswer(std::string_view text) {
  const std::string refusal = Begin(kRefusalHead) + "why ";
  if (text.starts_with(refusal) && text.ends_with(kEnd)) {
    std::string_view why = text.substr(refusal.size());
    return Status(ENOENT, std::string(why.substr(0, why.find('\n'))));
  }
  const auto take = [](Lines& lines, const auto& words, std::vector<NamedDonor>& out) {
    if (words[0] != "donor") return;
    if (words.size() != 5 || out.size() == kMostDonors) return lines.Fail();
    NamedDonor& donor = out.emplace_back();
    lines.Read(words[1], donor.address);
    lines.Read(words[2], donor.port);
    lines.Read(words[3], donor.failure_domain);
    lines.Read(words[4], donor.name);
  };
  auto read = ReadText<std::vector<NamedDonor>>(text, kAnswerHead, take);
  if (!read) return Status(EPROTO, "the agent's answer has no sense");
  return std::move(*read);
}

const char* ProblemOf(const Announcement& announcement) {
  if (!announcement.address.empty() && !IsAddress(announcement.address))
    return "its address is no IP address";
  if (announcement.donated_bytes > kMostBytes || announcement.leased_bytes > kMostBytes)
    return "it has more than 1 PiB";
  if (announcement.leases > kMostCount || announcement.sessions > kMostCount)
    return "it has more than 1048576 leases or sessions";
  for (const auto& [tenant, bytes] : announcement.tenants) {
    if (tenant.empty() || tenant.size() > kLongestTenant || !IsPrintable(tenant))
      return "the name of a tenant has not 1 to 31 printable characters";
  }
  if (!announcement.pool.empty() && !IsDonorName(announcement.pool))
    return "its block pool has no name of 1 to 30 of a-z, 0-9 and '-'";
  if (announcement.block_bytes > kMostBlockBytes) return "it has blocks of more than 16 MiB";
  return IsPrintable(announcement.version) ? nullptr : "its version has unprintable characters";
}

bool IsComplete(std::string_view text) { return text.ends_with("\n" + std::string(kEnd)); }

bool IsDonorName(std::string_view text) {
  constexpr size_t kLongest = 30;
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= kLongest && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), is_inner);
}

}  // namespace rocegw::far
