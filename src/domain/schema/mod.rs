//! The structural schema of a CRD version, as plain data.
