//! Etch makes the defaults of Kubernetes CRDs stored facts.
//!
//! The API server fills `default:` values from a CRD's schema whenever it decodes an object. Until somebody writes the
//! object, such a value is visible in every read and present in no etcd value. Etch finds these values and has the API
//! server store them, without taking a field from anyone.

pub mod domain;
