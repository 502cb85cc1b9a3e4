package remote

// SetPart makes parts smaller, so that a test needs less to have several.
func (s *Service) SetPart(bytes int) { s.part = bytes }
