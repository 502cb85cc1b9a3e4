package policy

// blazarRules have the names of Blazar's own rules (blazar/policies), so that a policy file for
// Blazar keeps its meaning.
var blazarRules = []Rule{
	{Name: "blazar:leases:get", Check: anyReader, Scopes: bothScopes,
		Description: "List and show leases of the caller's project, in Blazar's form. An admin may show every project's.",
		Operations:  []Operation{{"GET", "/v1/leases"}, {"GET", "/v1/leases/{id}"}, {"GET", "/v1/leases/{id}/hosts"}}},
	{Name: "blazar:leases:post", Check: member, Scopes: projectOnly,
		Description: "Create a lease for the caller's project.",
		Operations:  []Operation{{"POST", "/v1/leases"}}},
	{Name: "blazar:leases:put", Check: member, Scopes: bothScopes,
		Description: "Change a lease of the caller's project. An admin may change every project's.",
		Operations:  []Operation{{"PUT", "/v1/leases/{id}"}, {"PATCH", "/v1/leases/{id}"}}},
	{Name: "blazar:leases:delete", Check: member, Scopes: bothScopes,
		Description: "Delete a lease of the caller's project. An admin may delete every project's.",
		Operations:  []Operation{{"DELETE", "/v1/leases/{id}"}}},
}
