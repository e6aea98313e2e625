// SPDX-License-Identifier: Apache-2.0
// Keys of objects in the store. An object has two: its intent (name, meta, spec), which clients
// write, and its status, which the controller writes. So a changed status never invalidates a
// client's etag, and the intent's revision tells what gateways need. Both are serialized messages
// of the object's type. Any thread.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "controlplane/model/resource_name.h"

namespace rocegw::model {

enum class Part { kIntent, kStatus };

// Guards: keys for rules over several objects ("guard/capacity"). A transaction that relies on the
// rule compares the key, one that could break it writes the key, so two such writes conflict.
inline constexpr std::string_view kGuardPrefix = "guard/";
inline constexpr std::string_view kIntentPrefix = "intent/";
inline constexpr std::string_view kStatusPrefix = "status/";

// Certificate records by name: "certificates/node/G".
inline constexpr std::string_view kCertificatePrefix = "certificates/";
// Record of the rotations of the fleet's keys (identity/fleet_key_rotation.h).
inline constexpr std::string_view kFleetKeysKey = "fleet-keys";

// Audit records, in the order of their writers' clocks: "audit/TIME-UUID".
inline constexpr std::string_view kAuditPrefix = "audit/";
// Running controllers, each under a lease; values are controlplane.v1.ReplicaRecord.
inline constexpr std::string_view kReplicaPrefix = "replica/";
// Returns a key that is not behind any record of that time.
std::string AuditKeyFrom(const google::protobuf::Timestamp& time);

// Returns "intent/pools/T/P" or a part of it: the prefix of a collection or of a tenant's pools, or
// the key of one object.
std::string KeyPrefix(Part part, Collection collection, std::string_view parent = {});
std::string KeyOf(Part part, const ResourceName& name);

struct StoredName {
  Part part = Part::kIntent;
  ResourceName name;
};
// Returns nullopt for other keys of the store.
std::optional<StoredName> ParseKey(std::string_view key);

// Parses a key of KeyOf.
ResourceName NameOfKey(std::string_view key);

// Returns the version of an object for clients: opaque to them, the revision of its intent.
std::string EtagOf(int64_t revision);
std::optional<int64_t> RevisionOfEtag(std::string_view etag);

}  // namespace rocegw::model
