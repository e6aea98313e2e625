// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/placement/placement.h"

#include <cstring>
#include <utility>

namespace rocegw::far {
namespace {

// Fields stand one behind the other: integers in the host's byte order, texts behind their length.
class Writer {
 public:
  template <typename T>
  void Put(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Text(const std::string& value) {
    Put(static_cast<uint32_t>(value.size()));
    text_ += value;
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

// After a field that the text does not have, all further ones are zero and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}

  template <typename T>
  T Get() {
    T value{};
    ok_ = ok_ && left_.size() >= sizeof value;
    if (!ok_) return value;
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  std::string Text() {
    const auto length = Get<uint32_t>();
    ok_ = ok_ && length <= left_.size();
    if (!ok_) return {};
    std::string value(left_.substr(0, length));
    left_.remove_prefix(length);
    return value;
  }
  // Number of elements that follow, each of at least `bytes`.
  size_t Count(size_t bytes) {
    const auto count = Get<uint64_t>();
    ok_ = ok_ && count <= left_.size() / bytes;
    return ok_ ? count : 0;
  }
  void Fail() { ok_ = false; }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && left_.empty(); }

 private:
  std::string_view left_;
  bool ok_ = true;
};

constexpr size_t kReplicaBytes = 4 + 8 + 8 + 4 + 1;
constexpr size_t kRangeBytes = 8 + 8;

Placement::Donor ReadDonor(Reader& reader) {
  Placement::Donor donor;
  donor.host = reader.Text();
  donor.port = reader.Text();
  donor.failure_domain = reader.Text();
  donor.name = reader.Text();
  donor.session = reader.Get<uint64_t>();
  donor.secret = reader.Get<uint64_t>();
  if (donor.host.empty() || donor.port.empty() || donor.session == 0) reader.Fail();
  return donor;
}

Placement::Slab ReadSlab(Reader& reader, size_t donors, uint64_t slab_bytes) {
  Placement::Slab slab;
  std::vector<bool> has(donors, false);
  bool whole = false;
  for (size_t left = reader.Count(kReplicaBytes); left != 0 && reader.ok(); left--) {
    Placement::Replica replica;
    replica.donor = reader.Get<uint32_t>();
    replica.lease = reader.Get<uint64_t>();
    replica.address = reader.Get<uint64_t>();
    replica.key = reader.Get<uint32_t>();
    replica.whole = reader.Get<uint8_t>() != 0;
    if (replica.donor >= donors || has[replica.donor]) {
      reader.Fail();
      return slab;
    }
    has[replica.donor] = true;
    whole = whole || replica.whole;
    slab.replicas.push_back(replica);
  }
  if (!slab.replicas.empty() && !whole) reader.Fail();
  uint64_t behind = 0;
  for (size_t left = reader.Count(kRangeBytes); left != 0 && reader.ok(); left--) {
    Placement::Range range;
    range.begin = reader.Get<uint64_t>();
    range.end = reader.Get<uint64_t>();
    const bool pages =
        range.begin % Placement::kPageBytes == 0 && range.end % Placement::kPageBytes == 0;
    if (!pages || range.begin < behind || range.end <= range.begin || range.end > slab_bytes) {
      reader.Fail();
    }
    behind = range.end;
    slab.lost.push_back(range);
  }
  return slab;
}

}  // namespace

std::string Encode(const Placement& placement) {
  Writer writer;
  writer.Text(placement.tenant);
  writer.Put(placement.slab_bytes);
  writer.Put(uint64_t{placement.donors.size()});
  for (const Placement::Donor& donor : placement.donors) {
    writer.Text(donor.host);
    writer.Text(donor.port);
    writer.Text(donor.failure_domain);
    writer.Text(donor.name);
    writer.Put(donor.session);
    writer.Put(donor.secret);
  }
  writer.Put(uint64_t{placement.slabs.size()});
  for (const Placement::Slab& slab : placement.slabs) {
    writer.Put(uint64_t{slab.replicas.size()});
    for (const Placement::Replica& replica : slab.replicas) {
      writer.Put(replica.donor);
      writer.Put(replica.lease);
      writer.Put(replica.address);
      writer.Put(replica.key);
      writer.Put(static_cast<uint8_t>(replica.whole ? 1 : 0));
    }
    writer.Put(uint64_t{slab.lost.size()});
    for (const Placement::Range& range : slab.lost) {
      writer.Put(range.begin);
      writer.Put(range.end);
    }
  }
  return writer.Take();
}

std::optional<Placement> DecodePlacement(std::string_view text) {
  Reader reader(text);
  Placement placement;
  placement.tenant = reader.Text();
  placement.slab_bytes = reader.Get<uint64_t>();
  const size_t donors = reader.Count(4 * sizeof(uint32_t) + 2 * sizeof(uint64_t));
  if (!reader.ok() || donors > Placement::kMostDonors || placement.slab_bytes == 0) {
    return std::nullopt;
  }
  for (size_t left = donors; left != 0 && reader.ok(); left--) {
    placement.donors.push_back(ReadDonor(reader));
  }
  for (size_t left = reader.Count(2 * sizeof(uint64_t)); left != 0 && reader.ok(); left--) {
    placement.slabs.push_back(ReadSlab(reader, donors, placement.slab_bytes));
  }
  if (!reader.at_end()) return std::nullopt;
  return placement;
}

}  // namespace rocegw::far
