// SPDX-License-Identifier: Apache-2.0
#include "controlplane/model/stored.h"

#include <google/protobuf/util/time_util.h>

#include <charconv>
#include <cstdio>

namespace rocegw::model {

std::string AuditKeyFrom(const google::protobuf::Timestamp& time) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llx-",
                static_cast<unsigned long long>(
                    google::protobuf::util::TimeUtil::TimestampToNanoseconds(time)));
  return std::string(kAuditPrefix) + text;
}

std::string KeyPrefix(Part part, Collection collection, std::string_view parent) {
  std::string key(part == Part::kIntent ? kIntentPrefix : kStatusPrefix);
  key += CollectionId(collection);
  key += '/';
  if (!parent.empty()) {
    key += parent;
    key += '/';
  }
  return key;
}

std::string KeyOf(Part part, const ResourceName& name) {
  return KeyPrefix(part, name.collection, name.parent) + name.id;
}

std::optional<StoredName> ParseKey(std::string_view key) {
  StoredName stored;
  if (key.starts_with(kIntentPrefix)) {
    key.remove_prefix(kIntentPrefix.size());
  } else if (key.starts_with(kStatusPrefix)) {
    key.remove_prefix(kStatusPrefix.size());
    stored.part = Part::kStatus;
  } else {
    return std::nullopt;
  }
  std::string text(key);
  for (const Collection collection : {Collection::kPools, Collection::kDonors}) {
    const std::string prefix = std::string(CollectionId(collection)) + "/";
    if (!key.starts_with(prefix)) continue;
    const std::string_view rest = key.substr(prefix.size());
    const size_t slash = rest.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    text = std::string(ParentCollectionId(collection)) + "/" + std::string(rest.substr(0, slash)) +
           "/" + prefix + std::string(rest.substr(slash + 1));
  }
  std::optional<ResourceName> name = ParseResourceName(text);
  if (!name.has_value()) return std::nullopt;
  stored.name = std::move(*name);
  return stored;
}

ResourceName NameOfKey(std::string_view key) { return ParseKey(key).value_or(StoredName()).name; }

std::string EtagOf(int64_t revision) { return "r" + std::to_string(revision); }

std::optional<int64_t> RevisionOfEtag(std::string_view etag) {
  if (!etag.starts_with('r')) return std::nullopt;
  int64_t revision = 0;
  const char* const end = etag.data() + etag.size();
  const auto [stop, error] = std::from_chars(etag.data() + 1, end, revision);
  if (error != std::errc() || stop != end || revision <= 0) return std::nullopt;
  return revision;
}

}  // namespace rocegw::model
