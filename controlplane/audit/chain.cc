// SPDX-License-Identifier: Apache-2.0
#include "controlplane/audit/chain.h"

#include <algorithm>
#include <span>
#include <utility>

#include "controlplane/identity/openssl.h"

namespace rocegw::audit {
namespace {

using controlplane::v1::AuditSeal;

void AppendNumber(uint64_t number, std::string& bytes) {
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
}

void AppendText(const std::string& text, std::string& bytes) {
  AppendNumber(text.size(), bytes);
  bytes += text;
}

void Sort(std::vector<Digested>& records) {
  std::ranges::sort(records, [](const Digested& a, const Digested& b) {
    return a.revision != b.revision ? a.revision < b.revision : a.digest < b.digest;
  });
}

// `records`: those under the seal, sorted.
std::string HashOf(const AuditSeal& seal, std::span<const Digested> records) {
  std::string bytes;
  AppendText(seal.previous(), bytes);
  AppendNumber(static_cast<uint64_t>(seal.after_revision()), bytes);
  AppendNumber(static_cast<uint64_t>(seal.revision()), bytes);
  AppendNumber(records.size(), bytes);
  for (const Digested& record : records) {
    AppendNumber(static_cast<uint64_t>(record.revision), bytes);
    bytes += record.digest;
  }
  return identity::Sha256(bytes);
}

// Returns the part of sorted records with revisions in (after, until].
std::span<const Digested> Within(std::span<const Digested> records, store::Revision after,
                                 store::Revision until) {
  const auto begin = std::ranges::upper_bound(records, after, {}, &Digested::revision);
  const auto end = std::ranges::upper_bound(begin, records.end(), until, {}, &Digested::revision);
  return {begin, end};
}

}  // namespace

Digested DigestOf(const store::Entry& record) {
  std::string bytes;
  AppendText(record.key, bytes);
  AppendText(record.value, bytes);
  return {record.mod_revision, identity::Sha256(bytes)};
}

std::optional<AuditSeal> NextSeal(const AuditSeal* previous, std::vector<Digested> records,
                                  store::Revision revision) {
  Sort(records);
  AuditSeal seal;
  if (previous != nullptr) {
    seal.set_after_revision(previous->revision());
    seal.set_previous(previous->hash());
  }
  seal.set_revision(revision);
  const auto under = Within(records, seal.after_revision(), revision);
  if (under.empty()) return std::nullopt;
  seal.set_records(under.size());
  seal.set_hash(HashOf(seal, under));
  return seal;
}

std::string HeadOf(const AuditSeal& seal) {
  return "r" + std::to_string(seal.revision()) + ":" + identity::Hex(seal.hash());
}

Verdict Verify(const std::vector<AuditSeal>& seals, std::vector<Digested> records,
               const std::string& known_head) {
  Sort(records);
  Verdict verdict;
  const auto fail = [&](store::Revision revision, std::string problem) {
    verdict.revision = revision;
    verdict.problem = std::move(problem);
    return verdict;
  };
  bool head_seen = known_head.empty();
  store::Revision sealed = 0;
  std::string previous;
  for (const AuditSeal& seal : seals) {
    if (seal.previous() != previous || seal.after_revision() != sealed ||
        seal.revision() <= sealed) {
      return fail(seal.revision(), "this seal does not continue the one before");
    }
    const auto under = Within(records, sealed, seal.revision());
    if (under.size() != seal.records()) {
      return fail(seal.revision(), "there were " + std::to_string(seal.records()) +
                                       " records between revisions " + std::to_string(sealed + 1) +
                                       " and " + std::to_string(seal.revision()) + ", now there " +
                                       "are " + std::to_string(under.size()));
    }
    if (HashOf(seal, under) != seal.hash()) {
      return fail(seal.revision(), "a record between revisions " + std::to_string(sealed + 1) +
                                       " and " + std::to_string(seal.revision()) +
                                       " is not what it was, or the seal is not");
    }
    head_seen = head_seen || HeadOf(seal) == known_head;
    sealed = seal.revision();
    previous = seal.hash();
    verdict.records += under.size();
  }
  verdict.unsealed = records.size() - verdict.records;
  if (!head_seen) return fail(sealed, "the known head is not in the chain: its end was cut off");
  return verdict;
}

}  // namespace rocegw::audit
