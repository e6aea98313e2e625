// SPDX-License-Identifier: Apache-2.0
// Where objects live in the store. An object has two keys: its intent (name, meta, spec), which
// clients write, and its status, which the controller writes; so a status that changes never makes
// a client's etag stale, and the intent's revision tells what gateways need. Both are serialized
// messages of the object's type. Any thread.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "controlplane/model/resource_name.h"

namespace rocegw::model {

enum class Part { kIntent, kStatus };

// Keys that stand for a rule over several objects ("guard/capacity"): who relies on the rule
// compares the key, who could break it writes the key, so two such writes never pass each other.
inline constexpr std::string_view kGuardPrefix = "guard/";
inline constexpr std::string_view kIntentPrefix = "intent/";
inline constexpr std::string_view kStatusPrefix = "status/";

// What is known of the certificates of a name: "certificates/node/G".
inline constexpr std::string_view kCertificatePrefix = "certificates/";

// Audit records, in the order of their writers' clocks: "audit/TIME-UUID".
inline constexpr std::string_view kAuditPrefix = "audit/";
// Controllers that are there, under a lease each; values are controlplane.v1.ReplicaRecord.
inline constexpr std::string_view kReplicaPrefix = "replica/";
// Not behind any record of that time.
std::string AuditKeyFrom(const google::protobuf::Timestamp& time);

// "intent/pools/T/P": the prefix of a collection, of a tenant's pools, and the key of one object.
std::string KeyPrefix(Part part, Collection collection, std::string_view parent = {});
std::string KeyOf(Part part, const ResourceName& name);

struct StoredName {
  Part part = Part::kIntent;
  ResourceName name;
};
// nullopt: some other key of the store.
std::optional<StoredName> ParseKey(std::string_view key);

// Of a key that KeyOf made.
ResourceName NameOfKey(std::string_view key);

// The version of an object as clients see it: opaque for them, the revision of its intent for us.
std::string EtagOf(int64_t revision);
std::optional<int64_t> RevisionOfEtag(std::string_view etag);

}  // namespace rocegw::model
